package manifest

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// commitFile lies in the asset directory of a checkpoint while several parts of it are being replaced. Whatever
// interrupts that, it is finished from here.
const commitFile = "commit.json"

// commit is a whole checkpoint whose parts are all on disk but not all in their place.
type commit struct {
	Manifest    []byte            `json:"manifest"`
	Generations map[string]string `json:"generations"` // by volume
	Before      map[string]string `json:"before"`      // the generations that were there; empty: none
}

func newCommit(r *record, snapshot *Snapshot, a assetDir) commit {
	c := commit{Manifest: r.manifest, Generations: make(map[string]string), Before: make(map[string]string)}
	for _, v := range snapshot.volumes {
		c.Generations[v.name], c.Before[v.name] = generationOf(v.entries), a.current(v.name)
	}
	return c
}

// changes counts what replacing last by c changes, of which one alone is atomic.
func (c commit) changes(last *record) int {
	n := 0
	if string(c.Manifest) != string(last.manifest) {
		n++
	}
	for volume, generation := range c.Generations {
		if c.Before[volume] != generation {
			n++
		}
	}
	return n
}

// write makes c what will be, or what was before it, whatever happens from now on.
func (c commit) write(a assetDir) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	dir, err := a.root.OpenRoot(a.base)
	if err != nil {
		return err
	}
	return errors.Join(replaceFile(dir, commitFile, data), dir.Close())
}

// apply puts everything in its place: the assets before the manifest. Doing it again does no harm.
func (s *Store) apply(c commit, r *record, a assetDir) error {
	for _, volume := range r.volumes {
		if err := a.switchTo(volume, c.Generations[volume]); err != nil {
			return err
		}
	}
	if err := s.inInactive(r.writeStored); err != nil {
		return err
	}
	s.remember(r)
	return nil
}

// applyWritten applies a commit that has been written. If that can't be, a full disk being the likeliest reason, it goes
// back to what was before; if not even that can be, the commit stays for the next try.
func (s *Store) applyWritten(c commit, r *record, a assetDir) error {
	err := s.apply(c, r, a)
	if err == nil {
		return a.removeCommit()
	}
	if lookErr := s.inInactive(r.lookStored); lookErr != nil {
		return errors.Join(err, lookErr)
	}
	if r.stored.file == checkpoint.Intact { // the last part is in place too
		s.remember(r)
		return err
	}
	for volume, generation := range c.Before {
		if generation == "" {
			continue
		}
		if backErr := a.switchTo(volume, generation); backErr != nil {
			return errors.Join(err, backErr)
		}
	}
	return errors.Join(err, a.removeCommit())
}

// removeCommit is durable: a commit that came back would undo what was saved after it.
func (a assetDir) removeCommit() error {
	if _, err := a.root.Lstat(path.Join(a.base, commitFile)); err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(a.root.Remove(path.Join(a.base, commitFile)), syncDir(a.root, a.base))
}

// replay finishes an interrupted save, or undoes it.
func (s *Store) replay(a assetDir) error {
	if !a.isDir(a.base) {
		return nil
	}
	data, err := readFile(a.root, path.Join(a.base, commitFile))
	if err != nil {
		return ignoreMissing(err)
	}
	var c commit
	if err := json.Unmarshal(data, &c); err != nil {
		return a.removeCommit()
	}
	r, err := parse(c.Manifest, isPrevious(a.base+".json"), s.dirs.Assets)
	if err != nil || r.base() != a.base || slices.ContainsFunc(r.volumes, func(v string) bool { return !a.isWhole(v, c.Generations[v]) }) {
		return a.removeCommit() // somebody damaged it: what is there now must do
	}
	return s.applyWritten(c, r, a)
}

// replayAll finishes what a crash interrupted.
func (s *Store) replayAll(assets *os.Root) error {
	bases, err := readNames(assets, ".")
	for _, base := range bases {
		err = errors.Join(err, s.replay(assetDir{assets, base}))
	}
	return err
}
