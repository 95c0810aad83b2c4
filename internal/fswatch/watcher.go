// Package fswatch is what fsnotify leaves to its users: a watch of a path that follows what lies there, also after a
// mount or an unmount, of which inotify tells nothing; and errors that name the limit of the kernel that they are about.
package fswatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Watcher watches a set of directories. It is one inotify instance and one open file. Its methods are for one goroutine.
type Watcher struct {
	Events <-chan fsnotify.Event
	// Errors has fsnotify.ErrEventOverflow after events were lost: then Reset.
	Errors <-chan error
	// Mounts holds a token after the mounts that this process sees have changed. Sync then tells what that concerns.
	Mounts <-chan struct{}

	inotify *fsnotify.Watcher
	mounts  *mounts
	lies    map[string]inode // what lay at the path when its watch was put there
}

type inode struct{ device, number uint64 }

// New watches nothing yet.
func New() (*Watcher, error) {
	inotify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, explain(err)
	}
	mounts, err := watchMounts()
	if err != nil {
		return nil, errors.Join(err, inotify.Close())
	}
	return &Watcher{
		Events: inotify.Events, Errors: inotify.Errors, Mounts: mounts.changed,
		inotify: inotify, mounts: mounts, lies: make(map[string]inode),
	}, nil
}

// Close ends it, and everything that it began.
func (w *Watcher) Close() error { return errors.Join(w.mounts.close(), w.inotify.Close()) }

// Sync watches the directories that lie at the paths now, and nothing else. fresh are those that were not watched until
// now: what has happened in them was not seen. missing are those where no directory lies. The error is about the others
// that can't be watched; it does not keep the rest from it.
func (w *Watcher) Sync(paths []string) (fresh, missing []string, failed error) {
	watched := make(map[string]bool)
	for _, path := range w.inotify.WatchList() { // the kernel may have forgotten some
		watched[path] = true
		if !slices.Contains(paths, path) {
			w.forget(path)
		}
	}
	taken := make(map[inode]bool) // by another name: inotify has one watch for each inode
	for _, path := range paths {
		lies, err := lookUp(path)
		switch {
		case isMissing(err):
			missing = append(missing, path)
			w.forget(path)
			continue
		case err != nil:
			failed = err
			continue
		case taken[lies], watched[path] && w.lies[path] == lies:
			taken[lies] = true
			continue
		}
		taken[lies] = true
		w.forget(path)
		if err := w.inotify.Add(path); isMissing(err) {
			missing = append(missing, path)
			continue
		} else if err != nil {
			failed = explain(fmt.Errorf("watch %s: %w", path, err))
			continue
		}
		w.lies[path] = lies
		fresh = append(fresh, path)
	}
	return fresh, missing, failed
}

// Reset makes everything fresh for the next Sync. After events were lost, it is not known what the kernel still watches: a
// directory that was made anew may well have the number of the one that was removed.
func (w *Watcher) Reset() {
	for _, path := range w.inotify.WatchList() {
		w.forget(path)
	}
}

func (w *Watcher) forget(path string) {
	delete(w.lies, path)
	_ = w.inotify.Remove(path) // the kernel may have done so itself
}

// lookUp is what lies at the path. It is asked before the watch is put there: were it replaced in between, the next Sync
// would only put one there again.
func lookUp(path string) (inode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return inode{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return inode{}, &fs.PathError{Op: "watch", Path: path, Err: syscall.ENOTDIR}
	}
	return inode{stat.Dev, stat.Ino}, nil
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
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
