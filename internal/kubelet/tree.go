package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// tree is what is watched below the kubelet's root directory: its volumes, and what leads to its socket.
type tree struct {
	pods    *Pods
	log     zerolog.Logger
	changed func(checkpoint.UID)

	watcher  *fsnotify.Watcher         // nil while there can be none
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

// place brings the watches in line with what is wanted, and says whether it could.
func (t *tree) place() bool {
	err := t.open()
	if err == nil {
		err = t.placeAll()
	} else {
		t.all()
	}
	t.complain(err)
	return err == nil
}

func (t *tree) open() (err error) {
	if t.watcher == nil {
		t.watcher, err = fsnotify.NewWatcher()
	}
	return explain(err)
}

// placeAll compares with what the kernel still watches: it forgets what is removed or unmounted.
func (t *tree) placeAll() error {
	placed := make(map[string]bool)
	for _, dir := range t.watcher.WatchList() {
		placed[dir] = true
		if _, ok := t.wanted[dir]; !ok && !t.isSocket(dir) {
			_ = t.watcher.Remove(dir) // it may be gone with its pod
		}
	}
	var failed error
	add := func(dir string, news func()) {
		if placed[dir] {
			return
		}
		err := t.watcher.Add(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return // whoever makes it says so: the kubelet's root directory, or the loop
		}
		if err != nil {
			failed = explain(err)
		}
		news()
	}
	add(filepath.Dir(t.pods.directory), t.pods.Kick)
	add(t.pods.directory, t.pods.Kick)
	add(t.pods.resources, t.pods.Kick)
	fresh := make(map[checkpoint.UID]bool)
	for dir, uid := range t.wanted {
		add(dir, func() { fresh[uid] = true })
	}
	for uid := range fresh {
		t.changed(uid)
	}
	return failed
}

// isSocket says whether the directory is one that leads to a socket of the kubelet.
func (t *tree) isSocket(dir string) bool {
	return dir == t.pods.directory || dir == t.pods.resources || dir == filepath.Dir(t.pods.directory)
}

// handle acts on one event, and says whether there is something new to watch.
func (t *tree) handle(event fsnotify.Event) (place bool) {
	if !event.Has(fsnotify.Create) {
		return false
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

func (t *tree) events() <-chan fsnotify.Event {
	if t.watcher == nil {
		return nil
	}
	return t.watcher.Events
}

func (t *tree) errors() <-chan error {
	if t.watcher == nil {
		return nil
	}
	return t.watcher.Errors
}

func (t *tree) close() {
	if t.watcher != nil {
		t.watcher.Close()
	}
}

// explain names the limit that an inotify error is about: the kernel's own words for it mislead.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("too many inotify instances on this node: raise the sysctl fs.inotify.max_user_instances: %w", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("too many inotify watches on this node: raise the sysctl fs.inotify.max_user_watches: %w", err)
	default:
		return err
	}
}
