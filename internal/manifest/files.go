package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	tempPrefix = ".pod-checkpointer-" // of everything that is not whole yet; the kubelet ignores names with a leading dot

	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700

	// maxManifest is in bytes: the kubelet reads no more (k8s.io/kubernetes/pkg/kubelet/config.maxConfigLength).
	maxManifest = 10 << 20
)

// owner is who a file belongs to, and its mode with the type bits.
type owner struct {
	mode     fs.FileMode
	uid, gid int
}

func ours(mode fs.FileMode) owner { return owner{mode: mode, uid: os.Geteuid(), gid: os.Getegid()} }

func ownerOf(info fs.FileInfo) owner {
	stat := info.Sys().(*syscall.Stat_t)
	return owner{mode: info.Mode(), uid: int(stat.Uid), gid: int(stat.Gid)}
}

// openOrCreate opens a directory, which it makes, private, if it is missing.
func openOrCreate(path string) (*os.Root, error) {
	if err := os.Mkdir(path, dirMode); err == nil {
		if err := syncPath(filepath.Dir(path)); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.OpenRoot(path)
}

func syncPath(path string) error {
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(root, "."), root.Close())
}

// replaceFile makes name hold data, durably. Whoever reads name, and whatever is cut at any instant, sees what was there
// before or all of data. A symlink there is replaced, not followed.
func replaceFile(root *os.Root, name string, data []byte) error {
	if err := makeRoom(root, name); err != nil {
		return err
	}
	temp := tempName()
	err := createFile(root, temp, data, ours(fileMode))
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(root.Remove(temp)))
	}
	return syncDir(root, ".")
}

// makeRoom removes an empty directory that took the name of a file. One that holds something is for a person to judge.
func makeRoom(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return ignoreMissing(err)
	}
	return root.Remove(name)
}

// removeFile makes sure that there is no name, durably.
func removeFile(root *os.Root, name string) error {
	err := root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(root, "."))
}

func tempName() string { return fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()) }

// IsTemporary says whether a name is that of something that we are just writing.
func IsTemporary(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// createFile writes a file that does not exist yet, and its content durably; its name becomes durable with syncDir.
func createFile(root *os.Root, name string, data []byte, o owner) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = finish(f, o)
	}
	return errors.Join(err, f.Close())
}

// own gives a directory its owner and mode and makes its entries durable.
func own(root *os.Root, name string, o owner) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(finish(f, o), f.Close())
}

func finish(f *os.File, o owner) error {
	if err := f.Chown(o.uid, o.gid); err != nil {
		return err
	}
	if err := f.Chmod(o.mode); err != nil { // after chown, which clears the set-id bits
		return err
	}
	return f.Sync()
}

func syncDir(root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readFile reads a regular file of at most maxManifest bytes. It follows no symlink and waits for no pipe.
func readFile(root *os.Root, name string) ([]byte, error) {
	before, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() || before.Size() > maxManifest {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", name, maxManifest)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if after, err := f.Stat(); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(err, fmt.Errorf("%s: replaced while it was opened", name))
	}
	return io.ReadAll(io.LimitReader(f, maxManifest))
}

// readNames lists a directory.
func readNames(root *os.Root, name string) ([]string, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	return names, errors.Join(err, f.Close())
}

// sweep removes what a crash left unfinished in a directory: ours only, by its prefix.
func sweep(root *os.Root, dir string) error {
	names, err := readNames(root, dir)
	for _, name := range names {
		if IsTemporary(name) {
			err = errors.Join(err, root.RemoveAll(filepath.Join(dir, name)))
		}
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stamp tells one state of a file from another without reading it.
type stamp struct {
	dev, ino     uint64
	size         int64
	mode         uint32
	mtime, ctime syscall.Timespec
}

func stampOf(info fs.FileInfo) stamp {
	stat := info.Sys().(*syscall.Stat_t)
	return stamp{uint64(stat.Dev), stat.Ino, stat.Size, stat.Mode, stat.Mtim, stat.Ctim}
}

// settled says whether a change from now on must show in the stamp. The kernel stamps files with a clock that ticks
// every few milliseconds: two changes within one tick look the same.
func (s stamp) settled(now time.Time) bool {
	return now.Sub(time.Unix(s.ctime.Unix())) > time.Second
}
