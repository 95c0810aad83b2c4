package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// assetDir is the directory of one checkpoint's assets, below the root of all assets:
//
//	<base>/<volume>/..<digest>/   one generation of the content
//	<base>/<volume>/..data        -> the present generation
//	<base>/<volume>/<name>        -> ..data/<name>
//
// A container is bound to <base>/<volume>, which therefore stays the same directory.
type assetDir struct {
	root *os.Root
	base string // "<namespace>_<name>"
}

// save makes the volumes of a checkpoint what the snapshot says. What is so already is not touched.
func (a assetDir) save(snapshot *Snapshot) error {
	if len(snapshot.volumes) == 0 {
		return nil
	}
	if err := a.ensureDir(a.base, ours(dirMode|fs.ModeDir)); err != nil {
		return err
	}
	for i := range snapshot.volumes {
		v := &snapshot.volumes[i]
		if err := a.saveVolume(v); err != nil {
			return fmt.Errorf("volume %s: %w", v.name, errors.Join(err, a.settle(v.name)))
		}
	}
	return nil
}

// saveVolume writes a generation beside the present one and then swaps the link, as the kubelet does. New names are
// linked before the swap, old ones removed after it: who reacts to the swap finds everything in place.
func (a assetDir) saveVolume(v *volume) error {
	if err := a.ensureDir(path.Join(a.base, v.name), v.stable); err != nil {
		return err
	}
	generation := generationOf(v.entries)
	if err := a.writeGeneration(v, generation); err != nil {
		return err
	}
	for _, dir := range v.dirs {
		// Owner and mode as k8s.io/kubernetes/pkg/volume/util.MakeNestedMountpoints makes them.
		if err := a.ensureDir(path.Join(a.base, v.name, dir), ours(0o755|fs.ModeDir)); err != nil {
			return err
		}
	}
	if err := a.link(v.name, v.visible()); err != nil {
		return err
	}
	if err := a.swap(v.name, generation); err != nil {
		return err
	}
	return a.unlink(v.name, v.visible())
}

// ensureDir makes a directory. One that exists keeps its inode: containers are bound to it.
func (a assetDir) ensureDir(name string, o owner) error {
	info, err := a.root.Lstat(name)
	switch {
	case err == nil && info.IsDir() && ownerOf(info) == o:
		return nil
	case err == nil && info.IsDir():
		return own(a.root, name, o)
	case err == nil:
		err = a.root.Remove(name) // in here everything is ours
	}
	if err := ignoreMissing(err); err != nil {
		return err
	}
	if err := a.root.Mkdir(name, dirMode); err != nil {
		return err
	}
	if err := own(a.root, name, o); err != nil {
		return err
	}
	return syncDir(a.root, path.Dir(name))
}

// writeGeneration makes a generation hold the volume's content, durably. Nobody sees it unfinished.
func (a assetDir) writeGeneration(v *volume, generation string) error {
	target := path.Join(a.base, v.name, generation)
	if a.isWhole(v.name, generation) {
		return nil
	}
	temp := path.Join(a.base, tempName())
	err := a.writeEntries(temp, v.entries)
	if err == nil {
		err = a.root.RemoveAll(target) // damaged
	}
	if err == nil {
		err = a.root.Rename(temp, target)
	}
	if err != nil {
		return errors.Join(err, a.root.RemoveAll(temp))
	}
	return syncDir(a.root, path.Dir(target))
}

// isWhole says whether a generation holds what its name says.
func (a assetDir) isWhole(volume, generation string) bool {
	entries, err := readEntries(a.root, path.Join(a.base, volume, generation))
	return err == nil && generationOf(entries) == generation
}

func (a assetDir) writeEntries(dir string, entries []entry) error {
	for _, e := range entries {
		if err := a.writeEntry(path.Join(dir, e.path), e); err != nil {
			return err
		}
	}
	for _, e := range slices.Backward(entries) { // a directory is finished when its entries are
		if e.owner.mode.IsDir() {
			if err := own(a.root, path.Join(dir, e.path), e.owner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a assetDir) writeEntry(name string, e entry) error {
	switch e.owner.mode.Type() {
	case fs.ModeDir:
		return a.root.Mkdir(name, dirMode)
	case fs.ModeSymlink:
		if err := a.root.Symlink(string(e.data), name); err != nil {
			return err
		}
		return a.root.Lchown(name, e.owner.uid, e.owner.gid)
	default:
		return createFile(a.root, name, e.data, e.owner)
	}
}

// link makes a link into the content for each of names.
func (a assetDir) link(volume string, names []string) error {
	stable, made := path.Join(a.base, volume), false
	for _, name := range names {
		link, target := path.Join(stable, name), path.Join(dataLink, name)
		if present, err := a.root.Readlink(link); err == nil && present == target {
			continue
		}
		if err := a.root.RemoveAll(link); err != nil {
			return err
		}
		if err := a.root.Symlink(target, link); err != nil {
			return err
		}
		made = true
	}
	if made {
		return syncDir(a.root, stable)
	}
	return nil
}

// swap makes a generation the volume's content, durably.
func (a assetDir) swap(volume, generation string) error {
	stable := path.Join(a.base, volume)
	if present, err := a.root.Readlink(path.Join(stable, dataLink)); err == nil && present == generation {
		return nil
	}
	temp := path.Join(a.base, tempName())
	err := a.root.Symlink(generation, temp)
	if err == nil {
		err = a.root.Rename(temp, path.Join(stable, dataLink))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(a.root.Remove(temp)))
	}
	return syncDir(a.root, stable)
}

// unlink removes the links of all other names.
func (a assetDir) unlink(volume string, names []string) error {
	stable := path.Join(a.base, volume)
	present, err := readNames(a.root, stable)
	if err != nil {
		return err
	}
	for _, name := range present {
		if strings.HasPrefix(name, "..") || slices.Contains(names, name) || !a.isLink(path.Join(stable, name)) {
			continue
		}
		if err := a.root.Remove(path.Join(stable, name)); err != nil {
			return err
		}
	}
	return nil
}

func (a assetDir) isLink(name string) bool {
	info, err := a.root.Lstat(name)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}
