package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/namespacetest"
)

// volume is a directory that is written as the kubelet's AtomicWriter does.
type volume struct {
	dir        string
	generation int
}

func newVolume(t *testing.T, kubeletDir, uid string) *volume {
	t.Helper()
	v := &volume{dir: filepath.Join(kubeletDir, "pods", uid, "volumes", "kubernetes.io~secret", "token")}
	must(t, os.MkdirAll(v.dir, 0o755))
	v.swap(t)
	return v
}

// swap writes a new generation of the content.
func (v *volume) swap(t *testing.T) {
	t.Helper()
	v.generation++
	generation := "..generation-" + strconv.Itoa(v.generation)
	must(t, os.Mkdir(filepath.Join(v.dir, generation), 0o755))
	must(t, os.WriteFile(filepath.Join(v.dir, generation, "token"), []byte(generation), 0o600))
	must(t, os.Symlink(generation, filepath.Join(v.dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
}

// newVolumes watches below a kubelet's root directory, and returns a channel of what it tells.
func newVolumes(t *testing.T, log *journal, slow time.Duration) (dir string, volumes *Volumes, changes <-chan checkpoint.UID) {
	t.Helper()
	dir = shortDir(t)
	volumes = NewVolumes(NewPods(dir, log.logger()), log.logger())
	volumes.slow = slow
	calls := make(chan checkpoint.UID, 1000)
	source(t, func(ctx context.Context) { volumes.Run(ctx, func(uid checkpoint.UID) { calls <- uid }) })
	return dir, volumes, calls
}

func awaitChange(t *testing.T, changes <-chan checkpoint.UID, want checkpoint.UID) {
	t.Helper()
	if got := receive(t, changes, "change of "+string(want)); got != want {
		t.Fatalf("a change of %s, want one of %s", got, want)
	}
}

func TestSwapOfDataIsSeen(t *testing.T) {
	log := new(journal)
	dir, volumes, changes := newVolumes(t, log, time.Hour)
	a, b := newVolume(t, dir, "a"), newVolume(t, dir, "b")
	volumes.Watch(map[checkpoint.UID][]string{"a": {a.dir}})
	awaitChange(t, changes, "a") // what came before the watch
	a.swap(t)
	awaitChange(t, changes, "a")

	volumes.Watch(map[checkpoint.UID][]string{"a": {a.dir}, "b": {b.dir}})
	awaitChange(t, changes, "b")
	b.swap(t)
	awaitChange(t, changes, "b")

	must(t, os.WriteFile(filepath.Join(a.dir, "..other"), nil, 0o600)) // is no swap
	volumes.Watch(map[checkpoint.UID][]string{"b": {b.dir}, "gone": {filepath.Join(dir, "gone")}})
	b.swap(t)
	awaitChange(t, changes, "b")
	a.swap(t) // is wanted no more
	b.swap(t)
	awaitChange(t, changes, "b")
	if got := log.messages(t); len(got) != 0 {
		t.Errorf("log %q, want nothing: a volume that is gone is gone with its pod", got)
	}
}

func TestLatestSetIsWatched(t *testing.T) {
	dir := shortDir(t)
	volumes := NewVolumes(NewPods(dir, new(journal).logger()), new(journal).logger())
	a := newVolume(t, dir, "a")
	for range 100 {
		volumes.Watch(nil) // nobody takes them: it must not block
	}
	volumes.Watch(map[checkpoint.UID][]string{"a": {a.dir}})
	changes := make(chan checkpoint.UID, 10)
	source(t, func(ctx context.Context) { volumes.Run(ctx, func(uid checkpoint.UID) { changes <- uid }) })
	awaitChange(t, changes, "a")
}

func TestNoHandleStaysInAVolume(t *testing.T) {
	if !namespacetest.Inside(t, syscall.CLONE_NEWNS) {
		return
	}
	dir, volumes, changes := newVolumes(t, new(journal), time.Hour)
	for _, uid := range []string{"a", "b", "c"} {
		mounted := filepath.Join(dir, "pods", uid, "volumes", "kubernetes.io~secret", "token")
		must(t, os.MkdirAll(mounted, 0o755))
		must(t, syscall.Mount("tmpfs", mounted, "tmpfs", 0, ""))
		v := newVolume(t, dir, uid)
		volumes.Watch(map[checkpoint.UID][]string{checkpoint.UID(uid): {v.dir}})
		awaitChange(t, changes, checkpoint.UID(uid))
		v.swap(t)
		awaitChange(t, changes, checkpoint.UID(uid))
		if err := syscall.Unmount(mounted, 0); err != nil {
			t.Fatalf("the kubelet could not unmount the volume: %v", err)
		}
	}
}

func TestInotifyInstancesMayBeExhausted(t *testing.T) {
	if namespacetest.Inside(t, syscall.CLONE_NEWUSER) {
		exhaust(t, "user/max_inotify_instances", "fs.inotify.max_user_instances")
	}
}

func TestInotifyWatchesMayBeExhausted(t *testing.T) {
	if namespacetest.Inside(t, syscall.CLONE_NEWUSER) {
		exhaust(t, "user/max_inotify_watches", "fs.inotify.max_user_watches")
	}
}

// exhaust takes inotify away from this user namespace, and gives it back.
func exhaust(t *testing.T, limit, sysctl string) {
	t.Helper()
	restore := namespacetest.Limit(t, limit, "0")
	log := new(journal)
	dir, volumes, changes := newVolumes(t, log, 10*time.Millisecond)
	v := newVolume(t, dir, "a")
	volumes.Watch(map[checkpoint.UID][]string{"a": {v.dir}})
	for range 5 {
		awaitChange(t, changes, "a") // looked at again and again
	}
	if log.count(t, "can't all be watched") != 1 || !log.holds(sysctl) {
		t.Errorf("log %q, want one line that names %s", log.lines, sysctl)
	}
	restore()
	log.await(t, "watched again")
	for len(changes) > 0 {
		<-changes
	}
	v.swap(t)
	awaitChange(t, changes, "a")
	if got := log.messages(t); len(got) != 2 {
		t.Errorf("log %q, want one line for each change", got)
	}
}

// remountable is a volume that the kubelet keeps in a tmpfs: mounted, not filled yet.
func remountable(t *testing.T, kubeletDir, uid string) *volume {
	t.Helper()
	v := &volume{dir: filepath.Join(kubeletDir, "pods", uid, "volumes", "kubernetes.io~secret", "token")}
	must(t, os.MkdirAll(v.dir, 0o755))
	must(t, syscall.Mount("tmpfs", v.dir, "tmpfs", 0, ""))
	return v
}

// TestVolumeThatIsMountedAnewIsWatched: the kubelet tore it down and set it up again, for the same pod. Somebody else
// still holds what was mounted before, as a container does: no event tells of the unmount.
func TestVolumeThatIsMountedAnewIsWatched(t *testing.T) {
	if !namespacetest.Inside(t, syscall.CLONE_NEWNS) {
		return
	}
	dir, volumes, changes := newVolumes(t, new(journal), time.Hour)
	v := remountable(t, dir, "a")
	v.swap(t)
	volumes.Watch(map[checkpoint.UID][]string{"a": {v.dir}})
	awaitChange(t, changes, "a")
	for range 3 {
		holder, err := os.Open(v.dir)
		must(t, err)
		must(t, syscall.Unmount(v.dir, syscall.MNT_DETACH))
		must(t, os.Remove(v.dir))
		v = remountable(t, dir, "a")
		v.swap(t)
		awaitChange(t, changes, "a") // it may be told twice: as filled when it was found, and as swapped
		settleVolume(t, changes)
		v.swap(t)
		awaitChange(t, changes, "a")
		must(t, holder.Close())
	}
	must(t, syscall.Unmount(v.dir, 0)) // nobody holds anything in it
}

// TestVolumeThatIsMadeAnewIsWatched: one of a ConfigMap is no mount.
func TestVolumeThatIsMadeAnewIsWatched(t *testing.T) {
	log := new(journal)
	dir, volumes, changes := newVolumes(t, log, 10*time.Millisecond)
	v := newVolume(t, dir, "a")
	volumes.Watch(map[checkpoint.UID][]string{"a": {v.dir}})
	awaitChange(t, changes, "a")
	for range 3 {
		must(t, os.RemoveAll(v.dir))
		v = newVolume(t, dir, "a")
		awaitChange(t, changes, "a")
		settleVolume(t, changes)
		v.swap(t)
		awaitChange(t, changes, "a")
		settleVolume(t, changes)
	}
	if got := log.messages(t); len(got) != 0 {
		t.Errorf("log %q, want nothing", got)
	}
}

// settleVolume waits until nothing more is told.
func settleVolume(t *testing.T, changes <-chan checkpoint.UID) {
	t.Helper()
	for {
		select {
		case <-changes:
		case <-time.After(200 * time.Millisecond):
			return
		}
	}
}

// TestLostEventsOfVolumesAreMadeUpFor overflows the kernel's queue while nobody reads.
func TestLostEventsOfVolumesAreMadeUpFor(t *testing.T) {
	log := new(journal)
	dir := shortDir(t)
	volumes := NewVolumes(NewPods(dir, log.logger()), log.logger())
	v := newVolume(t, dir, "a")
	volumes.Watch(map[checkpoint.UID][]string{"a": {v.dir}})
	calls, resume := make(chan checkpoint.UID), make(chan struct{})
	source(t, func(ctx context.Context) {
		volumes.Run(ctx, func(uid checkpoint.UID) {
			select {
			case calls <- uid:
			case <-ctx.Done():
			}
			<-resume
		})
	})
	awaitChange(t, calls, "a") // and now it stalls
	for i := range 12_000 {    // two events each: more than fs.inotify.max_queued_events
		name := filepath.Join(v.dir, "noise-"+strconv.Itoa(i))
		must(t, os.WriteFile(name, nil, 0o600))
		must(t, os.Remove(name))
	}
	v.swap(t)
	close(resume)
	awaitChange(t, calls, "a")
	log.await(t, "events of volumes were lost")
}

func TestNothingGrowsOverTenThousandSwaps(t *testing.T) {
	dir, volumes, changes := newVolumes(t, new(journal), time.Hour)
	v := newVolume(t, dir, "a")
	volumes.Watch(map[checkpoint.UID][]string{"a": {v.dir}})
	awaitChange(t, changes, "a")
	swaps := func(n int) {
		for range n {
			must(t, os.Symlink("generation", filepath.Join(v.dir, "..data_tmp")))
			must(t, os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data")))
			awaitChange(t, changes, "a")
		}
	}
	swaps(10)
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	swaps(10_000)
	if after := openFiles(t); after > files {
		t.Errorf("%d open files, %d before", after, files)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
}
