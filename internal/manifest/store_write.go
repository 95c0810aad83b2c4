package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Save makes manifest and its assets the stored checkpoint: the assets first, durably, so that no manifest is ever there
// without them. What is so already is not written. While the checkpoint is active, its containers see new assets as they
// would see a change of the volume. The checkpoint of another pod of the same name becomes the generation before. A
// predecessor's checkpoint of the same parent is removed.
func (s *Store) Save(manifest []byte, snapshot *Snapshot) error {
	r, err := parse(manifest, false, s.dirs.Assets)
	if err != nil {
		return err
	}
	if names := r.differences(snapshot); len(names) > 0 {
		return fmt.Errorf("the manifest and the snapshot disagree about the volumes %q", names)
	}
	if err := s.keepPrevious(r); err != nil {
		return fmt.Errorf("keep the generation before: %w", err)
	}
	if err := s.save(r, snapshot); err != nil {
		return err
	}
	return s.removePredecessor(podName{r.checkpoint.Namespace, r.checkpoint.Name})
}

func (s *Store) save(r *record, snapshot *Snapshot) error {
	return s.withAssets(r, func(a assetDir) error {
		last := s.records[r.name()]
		if last == nil {
			return s.saveFirst(r, snapshot, a)
		}
		if err := a.prepare(snapshot); err != nil {
			return err
		}
		c := newCommit(r, snapshot, a)
		if c.changes(last) < 2 {
			return s.apply(c, r, a)
		}
		if err := c.write(a); err != nil {
			return err
		}
		return s.applyWritten(c, r, a)
	})
}

// saveFirst saves a checkpoint that is not there yet. If that fails, nothing of it is left.
func (s *Store) saveFirst(r *record, snapshot *Snapshot, a assetDir) error {
	err := a.prepare(snapshot)
	if err == nil {
		err = s.apply(newCommit(r, snapshot, a), r, a)
	}
	if err != nil {
		return errors.Join(err, s.inInactive(r.remove), a.remove())
	}
	return nil
}

// remember makes r what is remembered of its checkpoint.
func (s *Store) remember(r *record) {
	if last := s.records[r.name()]; last != nil {
		r.activated, r.nonce = last.activated, last.nonce
	}
	s.records[r.name()] = r
}

// differences names the volumes that only one of manifest and snapshot has.
func (r *record) differences(snapshot *Snapshot) (names []string) {
	var taken []string
	for _, v := range snapshot.volumes {
		taken = append(taken, v.name)
		if !slices.Contains(r.volumes, v.name) {
			names = append(names, v.name)
		}
	}
	for _, name := range r.volumes {
		if !slices.Contains(taken, name) {
			names = append(names, name)
		}
	}
	return names
}

// Restore puts the stored manifest back from memory.
func (s *Store) Restore(key Key) error {
	r, err := s.find(key)
	if err != nil {
		return err
	}
	return s.inInactive(r.writeStored)
}

// Activate puts the stored manifest before the kubelet. It does not while an asset is missing, nor beside somebody else's
// manifest of the same pod.
func (s *Store) Activate(key Key) error {
	return s.activate(key, func(r *record, dir *os.Root) error { return r.write(dir, r.nonce) })
}

// Retry activates with another nonce: the kubelet does not try again a static pod that it rejected, until it is another.
func (s *Store) Retry(key Key) error {
	return s.activate(key, func(r *record, dir *os.Root) error {
		r.nonce++
		return replaceFile(dir, r.name(), withNonce(r.manifest, r.nonce))
	})
}

func (s *Store) activate(key Key, write func(*record, *os.Root) error) error {
	r, err := s.find(key)
	if err != nil {
		return err
	}
	var missing []string
	err = s.withAssets(r, func(a assetDir) error {
		r = s.records[r.name()] // an interrupted save may just have been finished
		missing = r.missing(a)
		return nil
	})
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		r.assets = stamp{}
		return problemError{fmt.Errorf("its volumes %q are missing or damaged on disk; they are written again when its parent runs", missing)}
	}
	return s.inManifests(func(dir *os.Root) error {
		if err := errors.Join(r.lookActive(dir), s.lookForeign(dir)); err != nil {
			return err
		}
		if files := s.Foreign(key); len(files) > 0 {
			return problemError{fmt.Errorf("the static pod directory has a manifest of the same pod that is not ours: %q", files)}
		}
		if other := s.records[key.other().FileName()]; other != nil {
			if err := other.lookActive(dir); err != nil || other.active.file != checkpoint.Missing {
				return errors.Join(err, errors.New("the kubelet still has the manifest of the pod's other generation"))
			}
		}
		if err := write(r, dir); err != nil {
			return err
		}
		r.activated = true
		return nil
	})
}

// Withdraw takes the manifest from the kubelet. The stored one stays.
func (s *Store) Withdraw(key Key) error {
	r, err := s.find(key)
	if err != nil {
		return nil // then there is none
	}
	return s.inManifests(func(dir *os.Root) error {
		if err := r.lookActive(dir); err != nil || r.active.file == checkpoint.Missing {
			return err
		}
		if err := r.remove(dir); err != nil {
			return err
		}
		r.activated, r.nonce = false, 0 // what comes to lie there from now on is not ours
		return nil
	})
}

// Remove removes the stored manifest and then the assets. It does not while the kubelet has the manifest.
func (s *Store) Remove(key Key) error {
	r, err := s.find(key)
	if err != nil {
		return nil // removed already
	}
	if err := s.inManifests(r.lookActive); err != nil {
		return err
	}
	if r.active.file != checkpoint.Missing {
		return errors.New("the kubelet still has its manifest")
	}
	err = s.inAssets(func(root *os.Root) error {
		a := assetDir{root, r.base()}
		if err := a.removeCommit(); err != nil { // it would bring the manifest back
			return err
		}
		if err := s.inInactive(r.remove); err != nil {
			return err
		}
		return a.remove()
	})
	if err != nil {
		return err
	}
	delete(s.records, r.name())
	return nil
}

// Leave removes what is ours beside the checkpoints, when they are removed for good. Directories that hold something of
// somebody else's stay.
func (s *Store) Leave() error {
	err := s.inInactive(func(dir *os.Root) error { return removeFile(dir, stateFile) })
	if err != nil {
		return err
	}
	for _, dir := range []string{s.dirs.Inactive, s.dirs.Assets} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}

// Prune removes assets that only a running sandbox may need. Call it when the checkpoint has none.
func (s *Store) Prune(key Key) error {
	r, err := s.find(key)
	if err != nil {
		return err
	}
	return s.withAssets(r, func(a assetDir) error {
		r = s.records[r.name()]
		r.assets = stamp{}
		return a.prune(r.volumes)
	})
}

func (s *Store) find(key Key) (*record, error) {
	if r := s.records[key.FileName()]; r != nil {
		return r, nil
	}
	return nil, errors.New("there is no such checkpoint")
}
