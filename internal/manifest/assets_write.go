package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
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

// prepare writes the generations that the snapshot needs, durably, beside the present ones. What is there already is not
// written.
func (a assetDir) prepare(snapshot *Snapshot) error {
	if len(snapshot.volumes) == 0 {
		return nil
	}
	if err := a.ensureDir(a.base, ours(dirMode|fs.ModeDir)); err != nil {
		return err
	}
	for i := range snapshot.volumes {
		v := &snapshot.volumes[i]
		if err := a.prepareVolume(v); err != nil {
			return fmt.Errorf("volume %s: %w", v.name, err)
		}
	}
	return nil
}

func (a assetDir) prepareVolume(v *volume) error {
	stable := path.Join(a.base, v.name)
	if err := a.ensureDir(stable, v.stable); err != nil {
		return err
	}
	for _, dir := range v.dirs {
		// Owner and mode as k8s.io/kubernetes/pkg/volume/util.MakeNestedMountpoints makes them.
		if err := a.ensureDir(path.Join(stable, dir), ours(0o755|fs.ModeDir)); err != nil {
			return err
		}
	}
	for _, name := range v.visible() { // what was a mount point once is a name in the content now
		if a.isDir(path.Join(stable, name)) {
			if err := a.root.RemoveAll(path.Join(stable, name)); err != nil {
				return err
			}
		}
	}
	return a.writeGeneration(v)
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

// writeGeneration writes the volume's content into the directory that is named by it. Nobody sees it unfinished.
func (a assetDir) writeGeneration(v *volume) error {
	generation := generationOf(v.entries)
	if a.isWhole(v.name, generation) {
		return nil
	}
	temp, target := path.Join(a.base, tempName()), path.Join(a.base, v.name, generation)
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

// isWhole says whether a generation is there and holds what its name says.
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

func (a assetDir) isDir(name string) bool {
	info, err := a.root.Lstat(name)
	return err == nil && info.IsDir()
}

func (a assetDir) isLink(name string) bool {
	info, err := a.root.Lstat(name)
	return err == nil && info.Mode().Type() == fs.ModeSymlink
}
