package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestALookAtTheStoreChangesNothing: not even what a crash left, which the agent that runs may just be writing.
func TestALookAtTheStoreChangesNothing(t *testing.T) {
	dir := t.TempDir()
	dirs := Dirs{Manifests: filepath.Join(dir, "manifests"), Inactive: filepath.Join(dir, "inactive"), Assets: filepath.Join(dir, "assets")}
	if err := os.Mkdir(dirs.Manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	look := func() (names []string) {
		disk, err := ReadStore(dirs).List()
		if err != nil || !disk.Known {
			t.Fatalf("%v, %v", disk, err)
		}
		err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			names = append(names, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if diff := cmp.Diff([]string{dir, dirs.Manifests}, look()); diff != "" {
		t.Errorf("nothing was there (-was +is):\n%s", diff)
	}
	temp := []string{filepath.Join(dirs.Assets, "ns_x"), filepath.Join(dirs.Assets, "ns_x", commitFile), filepath.Join(dirs.Inactive, tempPrefix+"1"), filepath.Join(dirs.Manifests, tempPrefix+"2")}
	for _, path := range temp {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if names := look(); len(names) != 4+len(temp) {
		t.Errorf("something is gone: %q", names)
	}
}
