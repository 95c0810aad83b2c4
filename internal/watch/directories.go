package watch

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"
)

// Directories tells when anything changes in a set of directories. It watches their parents too, because a directory
// may be removed, created again or mounted over.
type Directories struct {
	paths []string
	log   zerolog.Logger
}

// NewDirectories watches the given absolute paths.
func NewDirectories(log zerolog.Logger, paths ...string) *Directories {
	return &Directories{paths: paths, log: log}
}

// Run calls changed after every (re)start of the watch and after every change, until ctx ends. Whoever lists in answer
// to changed misses nothing: the watch is in place before the call.
func (d *Directories) Run(ctx context.Context, changed func()) {
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0),
	)
	said := ""
	for ctx.Err() == nil {
		err := d.watch(ctx, retry, changed)
		if ctx.Err() != nil {
			return
		}
		wait := retry.NextBackOff()
		d.log.WithLevel(levelOf(zerolog.WarnLevel, err.Error() != said)).Err(err).Dur("retry_in", wait).Msg("directories can't be watched: they are listed instead, more slowly")
		said = err.Error()
		changed()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (d *Directories) watch(ctx context.Context, retry backoff.BackOff, changed func()) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return explain(err)
	}
	defer watcher.Close()
	if err := d.add(watcher); err != nil {
		return err
	}
	retry.Reset()
	changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-watcher.Events:
			if !ok {
				return fsnotify.ErrClosed
			}
			if d.isWatched(event.Name) && event.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) {
				if err := d.add(watcher); err != nil {
					return err
				}
			}
			changed()
		case err, ok := <-watcher.Errors:
			if !ok {
				return fsnotify.ErrClosed
			}
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			changed() // what was lost does not matter: the next list has everything
		}
	}
}

// add watches each directory and its parent. A directory that is not there yet is seen through its parent.
func (d *Directories) add(watcher *fsnotify.Watcher) error {
	for _, path := range d.paths {
		if err := watcher.Add(filepath.Dir(path)); err != nil {
			return explain(err)
		}
		if err := watcher.Add(path); err != nil && !isMissing(err) {
			return explain(err)
		}
	}
	return nil
}

func (d *Directories) isWatched(path string) bool {
	for _, watched := range d.paths {
		if path == watched || path == filepath.Dir(watched) {
			return true
		}
	}
	return false
}
