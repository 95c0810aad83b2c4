package manifest

import (
	"errors"
	"os"
	"slices"
	"time"
)

// lookAssets brings what the record says of its assets up to date, if anything can have changed them.
func (r *record) lookAssets(assets *os.Root) {
	now := stamp{size: -1} // there is none
	if info, err := assets.Lstat(r.base()); err == nil {
		now = stampOf(info)
	}
	if now == r.assets {
		return
	}
	r.assets = stamp{}
	if now.settled(time.Now()) {
		r.assets = now
	}
	state := assetDir{assets, r.base()}.read(r.volumes)
	r.checkpoint.Digest, r.checkpoint.Outdated = combine(r.manifest, state.digests), state.outdated
}

// missingAssets names the volumes that the manifest mounts and that are not whole on disk.
func (r *record) missingAssets(assets *os.Root) []string {
	state := assetDir{assets, r.base()}.read(r.volumes)
	return slices.DeleteFunc(slices.Clone(r.volumes), func(name string) bool { return state.digests[name] != "" })
}

// recoverAssets finishes or undoes what a crash interrupted, and removes assets that no manifest on disk is for.
func (s *Store) recoverAssets(on *roots) error {
	bases, err := readNames(on.assets, ".")
	for _, base := range bases {
		a, name := assetDir{on.assets, base}, base+".json"
		switch r := s.records[name]; {
		case r != nil:
			err = errors.Join(err, sweep(on.assets, base))
			for _, volume := range r.volumes {
				err = errors.Join(err, a.settle(volume))
			}
		case mayBeOurs(name) && isMissing(on.inactive, name) && isMissing(on.manifests, name):
			err = errors.Join(err, a.remove())
		}
	}
	return err
}

func isMissing(dir *os.Root, name string) bool {
	_, err := dir.Lstat(name)
	return err != nil && ignoreMissing(err) == nil
}
