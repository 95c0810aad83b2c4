package manifest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// newDisk is a node whose checkpoints lie on a small disk of their own, in a mount namespace of the test's own.
func newDisk(t testing.TB) (n *node, disk string) {
	t.Helper()
	n = newScenario(t, ownMounts(t))
	disk = filepath.Join(n.dir, "disk")
	mount(t, "tmpfs", disk, "tmpfs", 0, "size=1m,nr_inodes=100")
	n.dirs = dirsIn(disk)
	must(t, os.Mkdir(n.dirs.Manifests, 0o755))
	n.restart()
	return n, disk
}

func ownMounts(t testing.TB) (dir string) {
	t.Helper()
	needRoot(t)
	dir = t.TempDir()
	runtime.LockOSThread() // for good: the thread, and the namespace with it, ends with the test
	if err := syscall.Unshare(syscall.CLONE_FS | syscall.CLONE_NEWNS); err != nil {
		needOrSkip(t, "the right to make a mount namespace: "+err.Error())
	}
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	return dir
}

func mount(t testing.TB, source, dir, kind string, flags uintptr, options string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	must(t, syscall.Mount(source, dir, kind, flags, options))
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}

// fill leaves room for so many pages, or so many inodes, and returns how to make room again.
func fill(t testing.TB, disk string, pages, inodes int) (free func()) {
	t.Helper()
	ballast := filepath.Join(disk, "ballast")
	must(t, os.Mkdir(ballast, 0o755))
	if pages >= 0 {
		f, err := os.Create(filepath.Join(ballast, "bytes"))
		must(t, err)
		page := make([]byte, os.Getpagesize())
		written := 0
		for err == nil {
			_, err = f.Write(page)
			written++
		}
		must(t, f.Truncate(int64(max(0, written-1-pages)*len(page))))
		must(t, f.Close())
	}
	if inodes >= 0 {
		made := 0
		for ; os.WriteFile(filepath.Join(ballast, fmt.Sprint(made)), nil, 0o600) == nil; made++ {
		}
		for ; inodes > 0; inodes-- {
			must(t, os.Remove(filepath.Join(ballast, fmt.Sprint(made-inodes))))
		}
	}
	return func() { must(t, os.RemoveAll(ballast)) }
}

// On a disk that is full, of bytes or of inodes and to every degree, each step leaves the old checkpoint or the new one,
// whole, and nothing half; once there is room, the next try succeeds.
func TestFullDisk(t *testing.T) {
	needRoot(t)
	failed := 0
	for room := range 24 {
		pages, inodes := room, -1
		if room >= 12 {
			pages, inodes = -1, room-12
		}
		t.Run(fmt.Sprintf("%d pages %d inodes", pages, inodes), func(t *testing.T) {
			n, disk := newDisk(t)
			before := step{}
			for _, now := range scenario() {
				free := fill(t, disk, pages, inodes)
				if err := now.do(n); err != nil {
					failed++
					if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space") {
						t.Errorf("%s: %v", now.name, err)
					}
					n.wantNoTemporaryFiles()
					n.restart()
					n.wantOneOf(between(before, now), now.name+" on a full disk")
				}
				free()
				must(t, now.do(n))
				n.wantOneOf([]diskState{now.diskState}, now.name)
				before = now
			}
			n.wantNothingLeft()
		})
	}
	if failed < 24 {
		t.Errorf("only %d steps failed: the disk was not full", failed)
	}
}

func (n *node) wantNoTemporaryFiles() {
	n.t.Helper()
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		must(n.t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasPrefix(filepath.Base(path), tempPrefix) {
				n.t.Errorf("left behind: %s", path)
			}
			return err
		}))
	}
}

func TestReadOnlyDisk(t *testing.T) {
	n, disk := newDisk(t)
	remount := func(flags uintptr) { must(t, syscall.Mount("", disk, "", syscall.MS_REMOUNT|flags, "")) }
	before := step{}
	for _, now := range scenario() {
		remount(syscall.MS_RDONLY)
		n.restart() // the agent starts on such a disk too
		if err := now.do(n); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "remount it read-write") {
			t.Errorf("%s: %v", now.name, err)
		}
		n.wantOneOf([]diskState{before.diskState}, now.name+" on a read-only disk")
		remount(0)
		must(t, now.do(n))
		n.wantOneOf([]diskState{now.diskState}, now.name)
		before = now
	}
	n.wantNothingLeft()
}

// What needs only the other directories goes on when one of them is lost.
func TestOneDirectoryLost(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	for _, dir := range []string{n.dirs.Assets, n.dirs.Inactive} {
		must(t, os.Rename(dir, dir+".away"))
		must(t, os.WriteFile(dir, nil, 0o600))
	}
	n.wantFiles(checkpoint.Altered, checkpoint.Intact)
	for what, do := range map[string]func(Key) error{
		"restored": n.store.Restore, "activated": n.store.Activate, "pruned": n.store.Prune, "removed": n.store.Remove,
	} {
		if do(web) == nil {
			t.Errorf("%s in a directory that is a file", what)
		}
	}
	must(t, n.store.Withdraw(web))
	n.wantFiles(checkpoint.Altered, checkpoint.Missing)
	for _, dir := range []string{n.dirs.Assets, n.dirs.Inactive} {
		must(t, os.Remove(dir))
		must(t, os.Rename(dir+".away", dir))
	}
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

// A file that not even root may replace (chattr +i).
func TestImmutableFile(t *testing.T) {
	needRoot(t)
	n := newNodeIn(t, t.TempDir())
	n.mountVolumes()
	n.restart()
	n.save("v1")
	n.activate()
	must(t, os.Truncate(n.active(), 0))
	setFlags(t, n.active(), 0x10) // FS_IMMUTABLE_FL
	err := n.store.Activate(web)
	n.wantNoTemporaryFiles()
	n.wantFiles(checkpoint.Intact, checkpoint.Altered)
	setFlags(t, n.active(), 0)
	if !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "lsattr") {
		t.Errorf("got %v", err)
	}
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

// A save that could not be finished must not bring back what is removed after it: its commit goes first.
func TestRemovalAfterAnUnfinishedSave(t *testing.T) {
	needRoot(t)
	n := newNodeIn(t, t.TempDir())
	n.mountVolumes()
	n.restart()
	n.save("v1")
	next, err := parse(n.manifest("v2"), false, n.dirs.Assets)
	must(t, err)
	must(t, n.store.inAssets(func(root *os.Root) error {
		a := assetDir{root, next.base()}
		return newCommit(next, n.snapshot(), a).write(a)
	}))
	setFlags(t, n.asset(commitFile), 0x10)
	if err := n.store.Remove(web); err == nil {
		t.Error("removed with a commit that would bring it back")
	}
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
	setFlags(t, n.asset(commitFile), 0)
	must(t, n.store.Remove(web))
	n.restart()
	n.wantNothingLeft()
}

func setFlags(t testing.TB, path string, flags uint32) {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	const setFlags = 0x40086602 // FS_IOC_SETFLAGS
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), setFlags, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		needOrSkip(t, "a file system with immutable files: "+errno.Error())
	}
}
