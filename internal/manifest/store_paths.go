package manifest

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Paths are those of everything of ours that is on disk, as last listed, in the order in which it is removed.
func (s *Store) Paths() (paths []string) {
	names := slices.Sorted(maps.Keys(s.records))
	for _, name := range names {
		if s.records[name].checkpoint.Active != 0 {
			paths = append(paths, filepath.Join(s.dirs.Manifests, name))
		}
	}
	for _, name := range names {
		paths = append(paths, filepath.Join(s.dirs.Inactive, name), filepath.Join(s.dirs.Assets, s.records[name].base()))
	}
	paths = append(paths, filepath.Join(s.dirs.Inactive, stateFile), s.dirs.Inactive, s.dirs.Assets)
	return slices.DeleteFunc(paths, isAbsent)
}

// PredecessorPaths are those of everything that a predecessor left.
func (s *Store) PredecessorPaths() (paths []string, err error) {
	parents := make(map[podName]bool)
	for _, in := range []func(func(*os.Root) error) error{s.inManifests, s.inInactive} {
		err = errors.Join(err, in(func(dir *os.Root) error {
			names, err := readNames(dir, ".")
			for _, name := range names {
				if parent, ok := predecessorOf(dir, name); ok {
					parents[parent] = true
					paths = append(paths, filepath.Join(dir.Name(), name))
				}
			}
			return err
		}))
	}
	for parent := range parents {
		for _, assets := range predecessorAssets {
			paths = append(paths, filepath.Join(filepath.Dir(s.dirs.Inactive), assets, parent.namespace, parent.name))
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(paths, isAbsent), err
}

func isAbsent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
