package manifest

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// digests of those of the volumes that are whole, by volume. Damage is not an error: what is not whole is as good as
// missing.
func (a assetDir) digests(volumes []string) map[string]string {
	digests := make(map[string]string, len(volumes))
	for _, volume := range volumes {
		info, err := a.root.Lstat(path.Join(a.base, volume))
		if err != nil || !info.IsDir() {
			continue
		}
		if generation := a.current(volume); a.isWhole(volume, generation) {
			digests[volume] = volumeDigest(ownerOf(info), generation)
		}
	}
	return digests
}

// outdated names what only a running sandbox may still need: volumes other than those given, and generations of those
// that are not the present one, to which subPath mounts are bound.
func (a assetDir) outdated(volumes []string) (paths []string, err error) {
	names, err := readNames(a.root, a.base)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	for _, name := range names {
		if name == commitFile {
			continue
		}
		if !slices.Contains(volumes, name) {
			paths = append(paths, path.Join(a.base, name))
			continue
		}
		current := a.current(name)
		if current == "" {
			continue // damaged: the next save repairs it
		}
		entries, err := readNames(a.root, path.Join(a.base, name))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry, "..") && entry != dataLink && entry != current {
				paths = append(paths, path.Join(a.base, name, entry))
			}
		}
	}
	return paths, nil
}

// prune removes what is outdated.
func (a assetDir) prune(volumes []string) error {
	paths, err := a.outdated(volumes)
	for _, name := range paths {
		err = errors.Join(err, a.root.RemoveAll(name))
	}
	return err
}

// remove removes all of a checkpoint's assets, durably.
func (a assetDir) remove() error {
	if _, err := a.root.Lstat(a.base); err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(a.root.RemoveAll(a.base), syncDir(a.root, "."))
}
