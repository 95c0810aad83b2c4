package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// withAssets calls do with a checkpoint's asset directory.
func (s *Store) withAssets(r *record, do func(assetDir) error) error {
	return s.inAssets(func(root *os.Root) error {
		a := assetDir{root, r.base()}
		if err := s.replay(a); err != nil {
			return err
		}
		return do(a)
	})
}

// missing names the volumes that the manifest mounts and that are not whole on disk.
func (r *record) missing(a assetDir) []string {
	return without(r.volumes, a.digests(r.volumes))
}

// without are those of the volumes that have no digest.
func without(volumes []string, digests map[string]string) []string {
	return slices.DeleteFunc(slices.Clone(volumes), func(name string) bool { return digests[name] != "" })
}

// AssetDirs are all directories below that of the assets that belong to checkpoints, as last listed: who watches them,
// and tells Touched of it, has damage in them found at once.
func (s *Store) AssetDirs() (dirs []string) {
	for _, r := range s.records {
		for _, dir := range r.assetDirs {
			dirs = append(dirs, filepath.Join(s.dirs.Assets, dir))
		}
	}
	slices.Sort(dirs)
	return dirs
}

// Touched has the assets in, below and above the given directories read again by the next List.
func (s *Store) Touched(dirs map[string]bool) {
	for _, r := range s.records {
		assets := filepath.Join(s.dirs.Assets, r.base())
		for dir := range dirs {
			if isIn(dir, assets) || isIn(assets, dir) {
				r.assets = stamp{}
			}
		}
	}
}

// isIn says whether a path is root or below it.
func isIn(path, root string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(rel)
}

// recoverAssets finishes or undoes interrupted changes, and removes assets that no manifest on disk is for.
func (s *Store) recoverAssets(assets *os.Root) error {
	bases, err := readNames(assets, ".")
	for _, base := range bases {
		a, name := assetDir{assets, base}, base+".json"
		r := s.records[name]
		switch {
		case r != nil:
			err = errors.Join(err, sweep(assets, base))
			for _, volume := range r.volumes {
				err = errors.Join(err, a.settle(volume))
			}
		case mayBeOurs(name) && !s.exists(name):
			err = errors.Join(err, a.remove())
		}
	}
	return err
}

// exists says whether there is a file by that name where a checkpoint's may be, or can't be ruled out.
func (s *Store) exists(name string) bool {
	errMissing := errors.New("missing")
	look := func(dir *os.Root) error {
		_, err := dir.Lstat(name)
		if err != nil && ignoreMissing(err) == nil {
			return errMissing
		}
		return err
	}
	return !errors.Is(s.inInactive(look), errMissing) || !errors.Is(s.inManifests(look), errMissing)
}
