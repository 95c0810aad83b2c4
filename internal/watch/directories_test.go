package watch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// watched starts a watch of dir and returns the channel of its calls. What it returns has seen the first call.
func watched(t *testing.T, dir string) <-chan struct{} {
	t.Helper()
	return watchedWith(t, zerolog.Nop(), dir)
}

func watchedWith(t *testing.T, log zerolog.Logger, dir string) <-chan struct{} {
	t.Helper()
	calls := make(chan struct{}, 100_000)
	run(t, log, dir, func(context.Context) { calls <- struct{}{} })
	await(t, calls, "the first list")
	return calls
}

// run watches dir until the test ends.
func run(t *testing.T, log zerolog.Logger, dir string, changed func(context.Context)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewDirectories(log, dir).Run(t.Context(), func(map[string]bool) { changed(t.Context()) })
	}()
	t.Cleanup(func() { <-done })
}

func await(t *testing.T, calls <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(10 * time.Second):
		t.Fatalf("no call after %s", what)
	}
}

// settle waits until a probe of our own was reported, so that what came before it was, too.
func settle(t *testing.T, dir string, calls <-chan struct{}) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600))
	await(t, calls, "a probe")
	for {
		select {
		case <-calls:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChangesOfFilesAreTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	must(t, os.Mkdir(dir, 0o700))
	file := filepath.Join(dir, "a.json")
	must(t, os.WriteFile(file, []byte("ours"), 0o600))
	calls := watched(t, dir)

	must(t, os.Truncate(file, 0))
	await(t, calls, "a truncation")
	settle(t, dir, calls)
	must(t, os.Remove(file))
	await(t, calls, "a deletion")
}

func TestDirectoryThatIsRemovedAndMadeAgainIsWatchedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	calls := watched(t, dir) // it is not there yet

	for range 3 {
		must(t, os.Mkdir(dir, 0o700))
		await(t, calls, "its creation")
		settle(t, dir, calls)
		must(t, os.RemoveAll(dir))
		await(t, calls, "its removal")
		for {
			select {
			case <-calls:
				continue
			case <-time.After(50 * time.Millisecond):
			}
			break
		}
	}
}
