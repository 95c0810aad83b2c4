package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// dataLink is the name under which k8s.io/kubernetes/pkg/volume/util.AtomicWriter swaps one version of a volume's
// content for the next.
const dataLink = "..data"

// readVolume reads one version of a volume. The kubelet removes a version only after it swapped in the next, so one that
// is still the present one when all of it has been read was whole.
func readVolume(dir string) (v volume, err error) {
	for range 10 {
		var whole bool
		if v, whole, err = readVersion(dir); whole || v.entries == nil {
			return v, err
		}
	}
	return volume{}, fmt.Errorf("%s can't be read before it changes: %w", dir, err)
}

func readVersion(dir string) (v volume, whole bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return v, false, fmt.Errorf("the kubelet has not made it yet, or --kubelet-dir names another directory: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return v, false, err
	}
	version, err := root.Readlink(dataLink)
	if err != nil {
		return v, false, fmt.Errorf("the kubelet has not filled it yet, or its mounts don't reach the checkpointer (mountPropagation HostToContainer): %w", err)
	}
	v.stable = ownerOf(info)
	v.entries, err = readEntries(root, version)
	again, linkErr := root.Readlink(dataLink)
	if err = errors.Join(err, linkErr); err == nil && again != version {
		err = errors.New("it has just changed")
	}
	return v, err == nil, err
}

// readEntries reads all that is below a directory, and the directory itself.
func readEntries(root *os.Root, dir string) ([]entry, error) {
	entries := []entry{}
	err := fs.WalkDir(root.FS(), dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		e, err := readEntry(root, name)
		if err != nil {
			return err
		}
		e.path = strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		entries = append(entries, e)
		return nil
	})
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	return entries, err
}

func readEntry(root *os.Root, name string) (entry, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return entry{}, err
	}
	e := entry{owner: ownerOf(info)}
	switch info.Mode().Type() {
	case fs.ModeDir:
	case 0:
		e.data, err = root.ReadFile(name)
	case fs.ModeSymlink:
		var target string
		target, err = root.Readlink(name)
		e.data = []byte(target)
	default:
		err = fmt.Errorf("neither a file, nor a directory, nor a symlink: %s", name)
	}
	return e, err
}
