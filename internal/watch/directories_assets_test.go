package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// awaitDir waits until a change in dir is told, and returns in which directories others were told meanwhile.
func awaitDir(t *testing.T, calls <-chan map[string]bool, dir string) (others map[string]bool) {
	t.Helper()
	others = make(map[string]bool)
	timeout := time.After(10 * time.Second)
	for {
		select {
		case dirs := <-calls:
			if dirs[dir] {
				return others
			}
			others = union(others, dirs)
		case <-timeout:
			t.Fatalf("no change in %s is told, but in %v", dir, others)
		}
	}
}

func TestChangesOfAssetsAreToldWithTheirDirectory(t *testing.T) {
	root := t.TempDir()
	manifests, volume := filepath.Join(root, "manifests"), filepath.Join(root, "assets", "kube-system_web", "config")
	content := filepath.Join(volume, "..1")
	must(t, os.MkdirAll(content, 0o700))
	must(t, os.Mkdir(manifests, 0o700))
	file := filepath.Join(content, "file")
	must(t, os.WriteFile(file, []byte("ours"), 0o600))

	calls := make(chan map[string]bool, 1000)
	d := NewDirectories(zerolog.Nop(), manifests)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(t.Context(), func(dirs map[string]bool) { calls <- dirs })
	}()
	t.Cleanup(func() { <-done })
	awaitDir(t, calls, everywhere)
	d.Watch([]string{volume, content})
	awaitDir(t, calls, content) // it is watched from now on

	must(t, os.Truncate(file, 0))
	awaitDir(t, calls, content)
	for range 3 { // the generation is made anew, as in a repair
		must(t, os.RemoveAll(content))
		must(t, os.Mkdir(content, 0o700))
		for quiet := false; !quiet; {
			select {
			case <-calls:
			case <-time.After(200 * time.Millisecond):
				quiet = true
			}
		}
		must(t, os.WriteFile(file, []byte("ours"), 0o600))
		awaitDir(t, calls, content)
	}
	d.Watch(nil)
	must(t, os.WriteFile(filepath.Join(manifests, "a.json"), nil, 0o600))
	awaitDir(t, calls, manifests)
}

// What we are writing is no news until it has its name.
func TestTemporaryFilesAreNotTold(t *testing.T) {
	dirs := manifest.Dirs{Manifests: filepath.Join(t.TempDir(), "manifests"), Inactive: filepath.Join(t.TempDir(), "inactive"), Assets: filepath.Join(t.TempDir(), "assets")}
	must(t, os.Mkdir(dirs.Manifests, 0o700))
	store, err := manifest.OpenStore(dirs)
	must(t, err)
	must(t, store.RecordNode("node", "uid")) // whatever it writes, by way of a temporary file
	calls := watched(t, dirs.Inactive)
	drain(calls)
	must(t, store.RecordNode("node", "another-uid"))
	await(t, calls, "a new state.json")
	drain(calls)
	if !manifest.IsTemporary(".pod-checkpointer-0") || manifest.IsTemporary("a.json") || manifest.IsTemporary(".hidden") {
		t.Error("temporary files are not told from others")
	}
	must(t, os.WriteFile(filepath.Join(dirs.Inactive, ".pod-checkpointer-0"), nil, 0o600))
	select {
	case <-calls:
		t.Error("a temporary file is told")
	case <-time.After(300 * time.Millisecond):
	}
}
