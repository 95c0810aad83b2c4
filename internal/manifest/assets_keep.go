package manifest

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
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

// errNotWhole says that something of a volume is missing or damaged.
var errNotWhole = errors.New("missing or damaged")

// read reads volumes back as they were saved. The error is errNotWhole if they no longer are what was saved.
func (a assetDir) read(volumes []string) (*Snapshot, error) {
	snapshot := new(Snapshot)
	for _, name := range slices.Sorted(slices.Values(volumes)) {
		v, err := a.readVolume(name)
		if err != nil {
			return nil, err
		}
		snapshot.volumes = append(snapshot.volumes, v)
	}
	return snapshot, nil
}

func (a assetDir) readVolume(name string) (volume, error) {
	stable := path.Join(a.base, name)
	info, err := a.root.Lstat(stable)
	if err != nil {
		return volume{}, orNotWhole(err)
	}
	generation, err := a.root.Readlink(path.Join(stable, dataLink))
	if err != nil {
		return volume{}, orNotWhole(err)
	}
	v := volume{name: name, stable: ownerOf(info)}
	if v.entries, err = readEntries(a.root, path.Join(stable, generation)); err != nil {
		return volume{}, orNotWhole(err)
	}
	if generationOf(v.entries) != generation {
		return volume{}, errNotWhole
	}
	err = fs.WalkDir(a.root.FS(), stable, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir() || dir == stable:
			return err
		case strings.HasPrefix(d.Name(), ".."):
			return fs.SkipDir
		}
		v.dirs = append(v.dirs, strings.TrimPrefix(dir, stable+"/"))
		return nil
	})
	return v, err
}

// orNotWhole tells damage from what could not be read this time.
func orNotWhole(err error) error {
	for _, damage := range []error{fs.ErrNotExist, syscall.ENOTDIR, syscall.EINVAL, syscall.ELOOP} { // EINVAL: of what is no link
		if errors.Is(err, damage) {
			return errNotWhole
		}
	}
	return err
}

// dirs are the checkpoint's asset directory and all directories in it, as far as they can be read.
func (a assetDir) dirs() (dirs []string) {
	_ = fs.WalkDir(a.root.FS(), a.base, func(dir string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && !IsTemporary(d.Name()) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	return dirs
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
