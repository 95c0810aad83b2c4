package manifest

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// assetState is what lies on disk of a checkpoint's assets.
type assetState struct {
	digests  map[string]string // by volume; a volume that is not whole has none
	outdated bool              // there is more than the volumes' present generations
}

// read says what is there of the given volumes. Damage is not an error: what is not whole is as good as missing.
func (a assetDir) read(volumes []string) assetState {
	state := assetState{digests: make(map[string]string, len(volumes))}
	for _, volume := range volumes {
		info, err := a.root.Lstat(path.Join(a.base, volume))
		if err != nil || !info.IsDir() {
			continue
		}
		generation, err := a.root.Readlink(path.Join(a.base, volume, dataLink))
		if err == nil && a.isWhole(volume, generation) {
			state.digests[volume] = volumeDigest(ownerOf(info), generation)
		}
	}
	outdated, err := a.outdated(volumes)
	state.outdated = err != nil || len(outdated) > 0
	return state
}

// outdated names what only a running sandbox may still need: volumes other than those given, and generations of those
// that are not the present one, to which subPath mounts are bound.
func (a assetDir) outdated(volumes []string) (paths []string, err error) {
	names, err := readNames(a.root, a.base)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	for _, name := range names {
		if !slices.Contains(volumes, name) {
			paths = append(paths, path.Join(a.base, name))
			continue
		}
		present, err := a.root.Readlink(path.Join(a.base, name, dataLink))
		if err != nil {
			continue // damaged: the next save repairs it
		}
		entries, err := readNames(a.root, path.Join(a.base, name))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if strings.HasPrefix(entry, "..") && entry != dataLink && entry != present {
				paths = append(paths, path.Join(a.base, name, entry))
			}
		}
	}
	return paths, nil
}

// prune removes what is outdated.
func (a assetDir) prune(volumes []string) error {
	paths, err := a.outdated(volumes)
	if err != nil {
		return err
	}
	for _, name := range paths {
		err = errors.Join(err, a.root.RemoveAll(name))
	}
	return err
}

// settle finishes or undoes what an interrupted save left of a volume: links to names that its content does not have, or
// names that lack their link.
func (a assetDir) settle(volume string) error {
	stable := path.Join(a.base, volume)
	if _, err := a.root.Lstat(stable); err != nil {
		return ignoreMissing(err)
	}
	names, err := readNames(a.root, path.Join(stable, dataLink))
	if err := ignoreMissing(err); err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { // a mount point hides content of its name
		info, err := a.root.Lstat(path.Join(stable, name))
		return err == nil && info.Mode().Type() == fs.ModeDir
	})
	return errors.Join(a.link(volume, names), a.unlink(volume, names))
}

// remove removes all of a checkpoint's assets, durably.
func (a assetDir) remove() error {
	if _, err := a.root.Lstat(a.base); err != nil {
		return ignoreMissing(err)
	}
	return errors.Join(a.root.RemoveAll(a.base), syncDir(a.root, "."))
}
