package manifest

import (
	"errors"
	"path"
	"slices"
	"strings"
)

// switchTo makes a generation the content of its volume, as the kubelet does: by one rename. New names are linked before
// it and old ones unlinked after it, so that who reacts to the rename finds everything in place.
func (a assetDir) switchTo(volume, generation string) error {
	names, err := a.names(volume, generation)
	if err != nil {
		return err
	}
	err = a.link(volume, names)
	if err == nil {
		err = a.swap(volume, generation)
	}
	if err != nil {
		return errors.Join(err, a.settle(volume))
	}
	return a.unlink(volume, names)
}

// settle finishes or undoes what an interrupted switch left: names that lack their link, and links without a name.
func (a assetDir) settle(volume string) error {
	if !a.isDir(path.Join(a.base, volume)) {
		return nil
	}
	names, err := a.names(volume, dataLink)
	if err := ignoreMissing(err); err != nil {
		return err
	}
	return errors.Join(a.link(volume, names), a.unlink(volume, names))
}

// names are those of a generation that the volume shows. A mount point hides content of its name.
func (a assetDir) names(volume, generation string) ([]string, error) {
	names, err := readNames(a.root, path.Join(a.base, volume, generation))
	return slices.DeleteFunc(names, func(name string) bool { return a.isDir(path.Join(a.base, volume, name)) }), err
}

// current is the volume's generation; empty if it has none.
func (a assetDir) current(volume string) string {
	generation, err := a.root.Readlink(path.Join(a.base, volume, dataLink))
	if err != nil {
		return ""
	}
	return generation
}

// link makes a link into the content for each of names.
func (a assetDir) link(volume string, names []string) error {
	stable, made := path.Join(a.base, volume), false
	for _, name := range names {
		link, target := path.Join(stable, name), path.Join(dataLink, name)
		if present, err := a.root.Readlink(link); err == nil && present == target {
			continue
		}
		if err := ignoreMissing(a.root.Remove(link)); err != nil {
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
	if a.current(volume) == generation {
		return nil
	}
	temp := path.Join(a.base, tempName())
	err := a.root.Symlink(generation, temp)
	if err == nil {
		err = a.root.Rename(temp, path.Join(a.base, volume, dataLink))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(a.root.Remove(temp)))
	}
	return syncDir(a.root, path.Join(a.base, volume))
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
