package kubelet

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Volumes tells when the kubelet swaps `..data` in a volume (k8s.io/kubernetes/pkg/volume/util.AtomicWriter). inotify
// watches hold no handle in the volume, so that the kubelet can unmount it. With the same inotify instance it tells Pods
// when the kubelet's socket is created: a node has few instances.
type Volumes struct {
	pods   *Pods
	log    zerolog.Logger
	slow   time.Duration                    // between two looks at what can't be watched
	wanted chan map[checkpoint.UID][]string // holds the latest set
}

// slowly is how often what can't be watched is read instead.
const slowly = 10 * time.Second

// NewVolumes watches nothing yet.
func NewVolumes(pods *Pods, log zerolog.Logger) *Volumes {
	return &Volumes{pods: pods, log: log, slow: slowly, wanted: make(chan map[checkpoint.UID][]string, 1)}
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
// each change, until ctx ends. Of what can't be watched, it calls changed now and then.
func (v *Volumes) Run(ctx context.Context, changed func(checkpoint.UID)) {
	t := &tree{pods: v.pods, log: v.log, changed: changed}
	defer t.close()
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		events, mounts, lost := t.news()
		select {
		case <-ctx.Done():
			return
		case pods := <-v.wanted:
			t.want(pods)
		case <-again.C:
		case <-mounts:
		case event := <-events:
			if !t.handle(event) {
				continue
			}
		case err := <-lost:
			v.log.Debug().Err(err).Msg("events of volumes were lost: all of them are read again")
			t.watcher.Reset()
		}
		again.Stop()
		if !t.place() {
			again.Reset(v.slow)
		}
	}
}
