package watch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/fswatch"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// Directories tells when anything changes in a set of directories, or in which directories they are: each may be removed,
// made again, mounted over, or be a symlink that is changed. Directories of assets come and go beside them.
type Directories struct {
	paths     []string
	assets    []string
	wanted    Mailbox[[]string] // the latest assets
	log       zerolog.Logger
	complaint string // why they can't be watched, as said last; empty: they are
}

// NewDirectories watches the given absolute paths.
func NewDirectories(log zerolog.Logger, paths ...string) *Directories {
	return &Directories{paths: paths, wanted: NewMailbox[[]string](), log: log}
}

// Watch replaces the directories of assets. It is for one goroutine, and does not block.
func (d *Directories) Watch(assets []string) { d.wanted.Put(assets) }

// everywhere is where something changed if it is not known where.
const everywhere = "/"

// Run calls changed after every (re)start of the watch and after every change, until ctx ends, with the directories in
// which something changed. Whoever lists in answer to changed misses nothing: the watch is in place before the call. While
// there can be no watch, it calls changed now and then.
func (d *Directories) Run(ctx context.Context, changed func(dirs map[string]bool)) {
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0),
	)
	for {
		err := d.watch(ctx, retry, changed)
		if ctx.Err() != nil {
			return
		}
		wait := retry.NextBackOff()
		d.complain(err, wait)
		changed(map[string]bool{everywhere: true})
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (d *Directories) watch(ctx context.Context, retry backoff.BackOff, changed func(map[string]bool)) error {
	watcher, err := fswatch.New()
	if err != nil {
		return err
	}
	defer watcher.Close()
	watched, _, err := d.place(watcher)
	if err != nil {
		return err
	}
	retry.Reset()
	d.watchedAgain()
	changed(map[string]bool{everywhere: true})
	for {
		moved, news := true, make(map[string]bool) // something may lie elsewhere now; where something has changed
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d.assets = <-d.wanted.slot:
		case event := <-watcher.Events:
			if manifest.IsTemporary(filepath.Base(event.Name)) {
				continue // what becomes of it is what counts
			}
			moved = event.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename) && slices.Contains(watched, event.Name)
			news[filepath.Dir(event.Name)] = true
		case <-watcher.Mounts:
		case err := <-watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return err
			}
			watcher.Reset() // what was lost does not matter: the next list has everything
			news[everywhere] = true
		}
		if moved {
			var fresh []string
			if watched, fresh, err = d.place(watcher); err != nil {
				return err
			}
			for _, dir := range fresh {
				news[dir] = true
			}
		}
		if len(news) > 0 {
			changed(news)
		}
	}
}

// place watches each directory, and what it and the symlinks to it lie in: that is where one is seen that is not there
// yet. watched are the names on which all that depends. fresh are those that were not watched before.
func (d *Directories) place(watcher *fswatch.Watcher) (watched, fresh []string, err error) {
	var parents, dirs []string
	for _, path := range d.paths {
		steps := resolve(path)
		for _, step := range steps {
			parents = append(parents, filepath.Dir(step))
		}
		watched = append(watched, steps...)
		dirs = append(dirs, steps[len(steps)-1])
	}
	fresh, missing, err := watcher.Sync(slices.Concat(parents, dirs, d.assets))
	if err != nil && len(d.assets) > 0 { // rather the manifests than nothing
		d.log.Warn().Err(err).Msg("the assets of checkpoints can't be watched: damage to them is found later")
		d.assets = nil
		fresh, missing, err = watcher.Sync(slices.Concat(parents, dirs))
	}
	for _, path := range missing {
		if slices.Contains(parents, path) {
			err = errors.Join(err, &fs.PathError{Op: "watch", Path: path, Err: fs.ErrNotExist})
		}
	}
	return slices.Concat(watched, parents, d.assets), fresh, err
}

// longestChain is how many symlinks the kernel follows: path_resolution(7).
const longestChain = 40

// resolve is path and, while it is a symlink, what that points to: the last may not exist.
func resolve(path string) (steps []string) {
	for range longestChain {
		if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(parent, filepath.Base(path))
		}
		steps = append(steps, path)
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return steps
}

func (d *Directories) complain(err error, wait time.Duration) {
	d.log.WithLevel(levelOf(zerolog.WarnLevel, err.Error() != d.complaint)).Err(err).Dur("retry_in", wait).
		Msg("directories can't be watched: they are listed instead, so that a deleted manifest is restored some seconds later")
	d.complaint = err.Error()
}

func (d *Directories) watchedAgain() {
	if d.complaint != "" {
		d.log.Info().Msg("directories are watched again: a deleted manifest is restored at once")
		d.complaint = ""
	}
}
