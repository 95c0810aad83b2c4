package kubelet

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/fswatch"
)

// tree is what is watched below the kubelet's root directory: its volumes, and what leads to its socket.
type tree struct {
	pods    *Pods
	log     zerolog.Logger
	changed func(checkpoint.UID)

	watcher  *fswatch.Watcher          // nil while there can be none
	wanted   map[string]checkpoint.UID // by directory of a volume
	degraded bool                      // something can't be watched, and that was said
}

func (t *tree) want(pods map[checkpoint.UID][]string) {
	t.wanted = make(map[string]checkpoint.UID)
	for uid, dirs := range pods {
		for _, dir := range dirs {
			t.wanted[dir] = uid
		}
	}
}

// place brings the watches in line with what is wanted and with what lies there, and says whether it could, so that
// nothing more is to be done before something tells.
func (t *tree) place() bool {
	err := t.open()
	complete := true
	if err == nil {
		complete, err = t.sync()
	} else {
		t.all()
	}
	t.complain(err)
	return err == nil && complete
}

func (t *tree) open() (err error) {
	if t.watcher == nil {
		t.watcher, err = fswatch.New()
	}
	return err
}

// sync is complete if nothing is missing but sockets: whoever makes one says so, to the directory above. A volume's
// directory is missing while the kubelet makes it anew.
func (t *tree) sync() (complete bool, err error) {
	sockets := []string{filepath.Dir(t.pods.directory), t.pods.directory, t.pods.resources}
	fresh, missing, err := t.watcher.Sync(slices.AppendSeq(sockets, maps.Keys(t.wanted)))
	uids := make(map[checkpoint.UID]bool)
	for _, dir := range fresh {
		switch uid, ok := t.wanted[dir]; {
		case !ok:
			t.pods.Kick()
		case isFilled(dir): // else it is told when the kubelet fills it
			uids[uid] = true
		}
	}
	if err != nil {
		t.all()
		return false, err
	}
	for uid := range uids {
		t.changed(uid)
	}
	return !slices.ContainsFunc(missing, func(dir string) bool { return t.wanted[dir] != "" }), nil
}

// isFilled says whether the kubelet has put the content into a volume.
func isFilled(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, "..data"))
	return err == nil
}

// handle acts on one event, and says whether there is something new to watch.
func (t *tree) handle(event fsnotify.Event) (place bool) {
	_, wanted := t.wanted[event.Name]
	if !event.Has(fsnotify.Create) {
		return wanted && event.Has(fsnotify.Remove|fsnotify.Rename)
	}
	dir := filepath.Dir(event.Name)
	switch {
	case event.Name == t.pods.directory, event.Name == t.pods.resources:
		return true
	case dir == t.pods.directory, dir == t.pods.resources:
		t.pods.Kick()
	case filepath.Base(event.Name) == "..data":
		if uid, ok := t.wanted[dir]; ok {
			t.changed(uid)
		}
	}
	return false
}

// all has everything looked at again.
func (t *tree) all() {
	uids := make(map[checkpoint.UID]bool)
	for _, uid := range t.wanted {
		uids[uid] = true
	}
	for uid := range uids {
		t.changed(uid)
	}
	t.pods.Kick()
}

// complain says once what is wrong, and once that it is over.
func (t *tree) complain(err error) {
	if t.degraded == (err != nil) {
		return
	}
	t.degraded = err != nil
	if t.degraded {
		t.log.Warn().Err(err).Msg("the kubelet's volumes can't all be watched: changes of Secrets and ConfigMaps are seen some seconds later")
		return
	}
	t.log.Info().Msg("the kubelet's volumes are watched again")
}

// news are the channels of the watcher; nil while there can be none.
func (t *tree) news() (events <-chan fsnotify.Event, mounts <-chan struct{}, lost <-chan error) {
	if t.watcher == nil {
		return nil, nil, nil
	}
	return t.watcher.Events, t.watcher.Mounts, t.watcher.Errors
}

func (t *tree) close() {
	if t.watcher != nil {
		t.watcher.Close()
	}
}
