package manifest

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Save makes manifest and its assets the stored checkpoint: the assets first, durably, so that no manifest is ever there
// without them. What is so already is not written. While the checkpoint is active, its containers see new assets as they
// would see a change of the volume.
func (s *Store) Save(manifest []byte, snapshot *Snapshot) error {
	r, err := s.parse(manifest)
	if err != nil {
		return err
	}
	if names := r.differences(snapshot); len(names) > 0 {
		return fmt.Errorf("the manifest and the snapshot disagree about the volumes %q", names)
	}
	on, err := s.open()
	if err != nil {
		return err
	}
	defer on.Close()
	last := s.records[r.name()]
	if err := (assetDir{on.assets, r.base()}).save(snapshot); err != nil {
		if last == nil { // of a checkpoint that is not there, no assets are either
			err = errors.Join(err, assetDir{on.assets, r.base()}.remove())
		}
		return err
	}
	if err := r.write(on.inactive); err != nil {
		return err
	}
	r.activated = last != nil && last.activated
	s.records[r.name()] = r
	return nil
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

// write makes the record's file in a directory hold its manifest. It is not written if it does.
func (r *record) write(dir *os.Root) error {
	now, err := r.sight(dir, sight{})
	if err != nil || now.file == checkpoint.Intact {
		return err
	}
	return replaceFile(dir, r.name(), r.manifest)
}

// Restore puts the stored manifest back from memory.
func (s *Store) Restore(namespace, name string) error {
	return s.with(namespace, name, func(r *record, on *roots) error { return r.write(on.inactive) })
}

// Activate puts the stored manifest before the kubelet. It does not while an asset is missing, nor beside somebody else's
// manifest of the same pod.
func (s *Store) Activate(namespace, name string) error {
	return s.with(namespace, name, func(r *record, on *roots) error {
		if missing := r.missingAssets(on.assets); len(missing) > 0 {
			return fmt.Errorf("its volumes %q are missing or damaged on disk; they are written again when its parent runs", missing)
		}
		if err := errors.Join(r.look(on), s.lookForeign(on.manifests)); err != nil {
			return err
		}
		if files := s.Foreign(namespace, name); len(files) > 0 {
			return fmt.Errorf("the static pod directory has a manifest of the same pod that is not ours: %q", files)
		}
		r.activated = true
		return r.write(on.manifests)
	})
}

// Withdraw takes the manifest from the kubelet. The stored one stays.
func (s *Store) Withdraw(namespace, name string) error {
	return s.with(namespace, name, func(r *record, on *roots) error {
		if err := r.look(on); err != nil || r.active.file == checkpoint.Missing {
			return err
		}
		if err := removeFile(on.manifests, r.name()); err != nil {
			return err
		}
		r.activated = false
		return nil
	})
}

// Remove removes the stored manifest and then the assets. It does not while the kubelet has the manifest.
func (s *Store) Remove(namespace, name string) error {
	if s.records[FileName(namespace, name)] == nil {
		return nil
	}
	return s.with(namespace, name, func(r *record, on *roots) error {
		if err := r.look(on); err != nil {
			return err
		}
		if r.active.file != checkpoint.Missing {
			return errors.New("the kubelet still has its manifest")
		}
		if err := removeFile(on.inactive, r.name()); err != nil {
			return err
		}
		if err := (assetDir{on.assets, r.base()}).remove(); err != nil {
			return err
		}
		delete(s.records, r.name())
		return nil
	})
}

// Prune removes assets that only a running sandbox may need. Call it when the checkpoint has none.
func (s *Store) Prune(namespace, name string) error {
	return s.with(namespace, name, func(r *record, on *roots) error {
		return assetDir{on.assets, r.base()}.prune(r.volumes)
	})
}

// with calls do with a checkpoint that is remembered, and looks at it anew the next time.
func (s *Store) with(namespace, name string, do func(*record, *roots) error) error {
	r := s.records[FileName(namespace, name)]
	if r == nil {
		return errors.New("there is no such checkpoint")
	}
	on, err := s.open()
	if err != nil {
		return err
	}
	err = do(r, on)
	r.stored, r.active, r.assets = sight{}, sight{}, stamp{}
	return errors.Join(err, on.Close())
}
