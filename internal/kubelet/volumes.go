package kubelet

import (
	"context"
	"maps"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Volumes tells when the kubelet swaps `..data` in a volume (k8s.io/kubernetes/pkg/volume/util.AtomicWriter). inotify
// watches hold no handle in the volume, so that the kubelet can unmount it.
type Volumes struct {
	log    zerolog.Logger
	wanted chan map[checkpoint.UID][]string // holds the latest set
}

// NewVolumes watches nothing yet.
func NewVolumes(log zerolog.Logger) *Volumes {
	return &Volumes{log: log, wanted: make(chan map[checkpoint.UID][]string, 1)}
}

// Watch replaces what is watched: directories of volumes that the kubelet has filled, by pod. A watch of one that is not
// mounted yet would be on the directory below the mount, and see nothing. It is for one goroutine, and does not block.
func (v *Volumes) Watch(pods map[checkpoint.UID][]string) {
	for {
		select {
		case v.wanted <- pods:
			return
		default:
		}
		select {
		case <-v.wanted:
		default:
		}
	}
}

// Run calls changed for a pod after a watch for it was put in place, because what happened before is not seen, and after
// each change, until ctx ends.
func (v *Volumes) Run(ctx context.Context, changed func(checkpoint.UID)) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		v.log.Error().Err(err).Msg("volumes can't be watched: changes of Secrets and ConfigMaps are seen when their pod changes; raise fs.inotify.max_user_instances")
		<-ctx.Done()
		return
	}
	defer watcher.Close()
	watched := make(map[string]checkpoint.UID)
	for {
		select {
		case <-ctx.Done():
			return
		case pods := <-v.wanted:
			v.replace(watcher, watched, pods, changed)
		case event := <-watcher.Events:
			if filepath.Base(event.Name) == "..data" && event.Has(fsnotify.Create) {
				if uid, ok := watched[filepath.Dir(event.Name)]; ok {
					changed(uid)
				}
			}
		case err := <-watcher.Errors:
			v.log.Debug().Err(err).Msg("events of volumes were lost: all of them are read again")
			for _, uid := range watched {
				changed(uid)
			}
		}
	}
}

func (v *Volumes) replace(watcher *fsnotify.Watcher, watched map[string]checkpoint.UID, pods map[checkpoint.UID][]string, changed func(checkpoint.UID)) {
	wanted := make(map[string]checkpoint.UID)
	for uid, dirs := range pods {
		for _, dir := range dirs {
			wanted[dir] = uid
		}
	}
	for dir := range watched {
		if _, ok := wanted[dir]; !ok {
			_ = watcher.Remove(dir) // it may be gone with its pod
		}
	}
	fresh := make(map[checkpoint.UID]bool)
	for dir, uid := range wanted {
		if _, ok := watched[dir]; ok {
			continue
		}
		if err := watcher.Add(dir); err != nil {
			v.log.Warn().Err(err).Str("volume", dir).Msg("the volume can't be watched: its changes are seen when its pod changes")
			delete(wanted, dir)
			continue
		}
		fresh[uid] = true
	}
	clear(watched)
	maps.Copy(watched, wanted)
	for uid := range fresh {
		changed(uid)
	}
}
