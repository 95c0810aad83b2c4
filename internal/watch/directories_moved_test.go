package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/namespacetest"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(line)
}

// news are the lines at info and above.
func (l *lines) news() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var news []string
	for line := range strings.Lines(l.all.String()) {
		if !strings.Contains(line, `"level":"debug"`) {
			news = append(news, line)
		}
	}
	return strings.Join(news, "")
}

// drain waits until nothing more is told.
func drain(calls <-chan struct{}) {
	for {
		select {
		case <-calls:
		case <-time.After(100 * time.Millisecond):
			return
		}
	}
}

// follows checks that a change of a file in dir is told.
func follows(t *testing.T, dir string, calls <-chan struct{}) {
	t.Helper()
	drain(calls)
	must(t, os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600))
	await(t, calls, "a change of a file in "+dir)
	drain(calls)
}

func TestDirectoryThatIsMountedOverIsWatched(t *testing.T) {
	if !namespacetest.Inside(t, syscall.CLONE_NEWNS) {
		return
	}
	dir, other := filepath.Join(t.TempDir(), "manifests"), t.TempDir()
	must(t, os.Mkdir(dir, 0o700))
	calls := watched(t, dir)
	drain(calls)
	for range 3 {
		must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, ""))
		await(t, calls, "a mount over it")
		follows(t, dir, calls)
		must(t, syscall.Unmount(dir, 0))
		await(t, calls, "the unmount")
		follows(t, dir, calls)
	}
	must(t, syscall.Mount("tmpfs", other, "tmpfs", 0, "")) // is none of our business
	must(t, syscall.Unmount(other, 0))
	select {
	case <-calls:
		t.Error("a mount elsewhere is told")
	case <-time.After(300 * time.Millisecond):
	}
}

func TestDirectoryThatIsASymlinkIsWatched(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "manifests")
	link := func(target string) {
		must(t, os.Symlink(target, dir+".new"))
		must(t, os.Rename(dir+".new", dir))
	}
	a, b := filepath.Join(root, "data", "a"), filepath.Join(root, "data", "b")
	must(t, os.MkdirAll(a, 0o700))
	must(t, os.MkdirAll(b, 0o700))
	link("data/a")
	calls := watched(t, dir)
	follows(t, a, calls)
	for range 3 {
		link(b)
		await(t, calls, "another target")
		follows(t, b, calls)
		link("data/a")
		await(t, calls, "the first target again")
		follows(t, a, calls)
		must(t, os.RemoveAll(a))
		await(t, calls, "the removal of the target")
		drain(calls)
		must(t, os.Mkdir(a, 0o700))
		await(t, calls, "a new target")
		follows(t, a, calls)
	}
	must(t, os.Remove(dir))
	must(t, os.Mkdir(dir, 0o700))
	await(t, calls, "a directory in place of the symlink")
	follows(t, dir, calls)
	must(t, os.Remove(filepath.Join(dir, "probe")))
	must(t, os.Remove(dir))
	must(t, os.Symlink("manifests", dir)) // in a circle
	await(t, calls, "a symlink to itself")
	drain(calls)
	link("data/a")
	await(t, calls, "a sound symlink")
	follows(t, a, calls)
}

// TestParentThatIsRemovedIsWaitedFor: then there is nothing to watch, and what is there is listed now and then.
func TestParentThatIsRemovedIsWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kubernetes", "manifests")
	must(t, os.MkdirAll(dir, 0o700))
	log := new(lines)
	calls := watchedWith(t, zerolog.New(log), dir)
	must(t, os.RemoveAll(filepath.Dir(dir)))
	for !strings.Contains(log.news(), "does not exist") {
		await(t, calls, "the removal")
	}
	must(t, os.MkdirAll(dir, 0o700))
	for !strings.Contains(log.news(), "watched again") {
		await(t, calls, "its return")
	}
	follows(t, dir, calls)
	if got := strings.Count(log.news(), "\n"); got != 2 {
		t.Errorf("%d log lines, want one for each change:\n%s", got, log.news())
	}
}

// TestUnreadableDirectoryIsListed needs an agent that may not do everything.
func TestUnreadableDirectoryIsListed(t *testing.T) {
	if os.Geteuid() == 0 && !namespacetest.InsideAs(t, 65534) {
		return
	}
	dir := filepath.Join(t.TempDir(), "manifests")
	must(t, os.Mkdir(dir, 0o700))
	log := new(lines)
	calls := watchedWith(t, zerolog.New(log), dir)
	must(t, os.Remove(dir))
	must(t, os.Mkdir(dir, 0))
	for !strings.Contains(log.news(), "permission denied") {
		await(t, calls, "it was made unreadable")
	}
	must(t, os.Chmod(dir, 0o700))
	for !strings.Contains(log.news(), "watched again") {
		await(t, calls, "it can be read")
	}
	follows(t, dir, calls)
}

func TestInotifyLimitsAreNamedAndOutlived(t *testing.T) {
	for name, limit := range map[string]string{"instances": "user/max_inotify_instances", "watches": "user/max_inotify_watches"} {
		t.Run(name, func(t *testing.T) {
			if !namespacetest.Inside(t, syscall.CLONE_NEWUSER) {
				return
			}
			restore := namespacetest.Limit(t, limit, "0")
			dir := filepath.Join(t.TempDir(), "manifests")
			must(t, os.Mkdir(dir, 0o700))
			log := new(lines)
			calls := watchedWith(t, zerolog.New(log), dir)
			for range 3 {
				await(t, calls, "a look now and then")
			}
			if !strings.Contains(log.news(), "fs.inotify.max_user_"+name) {
				t.Errorf("the log does not name the sysctl:\n%s", log.news())
			}
			restore()
			for !strings.Contains(log.news(), "watched again") {
				await(t, calls, "the return of inotify")
			}
			follows(t, dir, calls)
			if got := strings.Count(log.news(), "\n"); got != 2 {
				t.Errorf("%d log lines, want one for each change:\n%s", got, log.news())
			}
		})
	}
}

// TestLostEventsAreMadeUpFor overflows the kernel's queue while nobody reads: what matters is what is there now.
func TestLostEventsAreMadeUpFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	must(t, os.Mkdir(dir, 0o700))
	calls, resume := make(chan struct{}), make(chan struct{})
	run(t, zerolog.Nop(), dir, func(ctx context.Context) {
		select {
		case calls <- struct{}{}:
		case <-ctx.Done():
		}
		<-resume
	})
	await(t, calls, "the first list") // and now it stalls
	for i := range 12_000 {           // two events each: more than fs.inotify.max_queued_events
		name := filepath.Join(dir, fmt.Sprintf("noise-%d", i))
		must(t, os.WriteFile(name, nil, 0o600))
		must(t, os.Remove(name))
	}
	must(t, os.Remove(dir)) // these are lost
	must(t, os.Mkdir(dir, 0o700))
	close(resume)
	drain(calls)
	must(t, os.WriteFile(filepath.Join(dir, "last"), nil, 0o600))
	await(t, calls, "a change in the directory that was made anew")
}

func TestNothingGrowsOverTenThousandChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	must(t, os.Mkdir(dir, 0o700))
	calls := watched(t, dir)
	changes := func(n int) {
		for range n {
			must(t, os.Mkdir(filepath.Join(dir, "x"), 0o700))
			await(t, calls, "a change")
			must(t, os.Remove(filepath.Join(dir, "x")))
			await(t, calls, "a change")
			must(t, os.Rename(dir, dir+".old")) // the watches come and go with it
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Remove(dir+".old"))
			await(t, calls, "another directory")
		}
		follows(t, dir, calls)
		must(t, os.Remove(filepath.Join(dir, "probe")))
		drain(calls)
	}
	changes(3)
	files, goroutines := count(t, "/proc/self/fd"), runtime.NumGoroutine()
	changes(2000) // five events each, and more
	if after := count(t, "/proc/self/fd"); after > files {
		t.Errorf("%d open files, %d before", after, files)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	return len(entries)
}
