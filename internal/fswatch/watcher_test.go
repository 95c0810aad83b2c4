package fswatch

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func sync(t *testing.T, w *Watcher, paths ...string) (fresh, missing []string) {
	t.Helper()
	fresh, missing, err := w.Sync(paths)
	if err != nil {
		t.Fatal(err)
	}
	return fresh, missing
}

func TestSyncTellsWhatWasNotWatched(t *testing.T) {
	w, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	root := t.TempDir()
	a, b, alias, file := filepath.Join(root, "a"), filepath.Join(root, "b"), filepath.Join(root, "alias"), filepath.Join(root, "file")
	for _, err := range []error{os.Mkdir(a, 0o700), os.Symlink("a", alias), os.WriteFile(file, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what           string
		change         func() error
		want           []string
		fresh, missing []string
	}{
		{"the first", nil, []string{a, b, file}, []string{a}, []string{b, file}},
		{"the same again", nil, []string{a, b}, nil, []string{b}},
		{"one by two names", nil, []string{a, alias}, nil, nil},
		{"one that is there now", func() error { return os.Mkdir(b, 0o700) }, []string{a, b}, []string{b}, nil},
		{"less", nil, []string{b}, nil, nil},
		{"one that was dropped", nil, []string{a, b}, []string{a}, nil},
		{"another in its place", func() error { return syscall.Rename(b, a) }, []string{a, b}, []string{a}, []string{b}},
		{"all, after events were lost", func() error { w.Reset(); return nil }, []string{a}, []string{a}, nil},
	} {
		if step.change != nil {
			if err := step.change(); err != nil {
				t.Fatal(err)
			}
		}
		if fresh, missing := sync(t, w, step.want...); !slices.Equal(fresh, step.fresh) || !slices.Equal(missing, step.missing) {
			t.Errorf("%s: fresh %q, missing %q; want %q, %q", step.what, fresh, missing, step.fresh, step.missing)
		}
	}
}
