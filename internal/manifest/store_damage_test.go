package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// damages are what somebody else may do to one of our files.
var damages = map[string]struct {
	do   func(path string) error
	want checkpoint.File
}{
	"deleted":   {os.Remove, checkpoint.Missing},
	"truncated": {func(path string) error { return os.Truncate(path, 0) }, checkpoint.Altered},
	"overwritten in place, same length": {func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("#"), 0)
		return errors.Join(err, f.Close())
	}, checkpoint.Altered},
	"another image": {func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Replace(string(data), "v1", "v2-debug", 1)), 0o600)
	}, checkpoint.Altered},
	"another pod": {func(path string) error {
		return os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: other}\n"), 0o600)
	}, checkpoint.Altered},
	"an empty directory": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, checkpoint.Altered},
	"a symlink": {func(path string) error {
		target := filepath.Join(filepath.Dir(path), ".precious") // hidden, or it would be a second manifest of the pod
		return errors.Join(os.Rename(path, target), os.Symlink(target, path))
	}, checkpoint.Altered},
	"a dangling symlink": {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) }, checkpoint.Altered},
	"a pipe":             {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, checkpoint.Altered},
	"20 MB of noise":     {func(path string) error { return os.Truncate(path, 20<<20) }, checkpoint.Altered},
}

func TestDamageIsSeenAndRepaired(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)

			must(t, damage.do(n.active()))
			n.wantFiles(checkpoint.Intact, damage.want)
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)

			must(t, damage.do(n.stored()))
			n.wantFiles(damage.want, checkpoint.Intact)
			must(t, n.store.Restore(web))
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
			if data, _ := os.ReadFile(n.stored()); string(data) != string(n.manifest("v1")) {
				t.Errorf("restored %q", data)
			}
		})
	}
}

// What is damaged while nobody looks is repaired from the other copy.
func TestDamageDuringOurAbsence(t *testing.T) {
	for name, damage := range damages {
		if name == "another image" {
			continue // a good manifest: whoever wrote it meant it, and the parent's digest tells
		}
		t.Run("stored "+name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			digest := n.list().Digest
			must(t, damage.do(n.stored()))
			n.restart()
			n.wantFiles(damage.want, checkpoint.Intact)
			must(t, n.store.Restore(web))
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
			if got := n.list().Digest; got != digest {
				t.Errorf("digest %s, was %s", got, digest)
			}
		})
	}
	for name, damage := range damages {
		if name == "another pod" {
			continue // at our name, but without our mark: see TestForeignAtOurName
		}
		t.Run("active "+name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			must(t, damage.do(n.active()))
			n.restart()
			n.wantFiles(checkpoint.Intact, damage.want)
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
		})
	}
}

func TestDirectoryWithContentInOurPlace(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	must(t, os.MkdirAll(filepath.Join(n.active(), "precious"), 0o755))
	if err := n.store.Activate(web); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.active(), "precious")); err != nil {
		t.Error(err)
	}
	must(t, os.RemoveAll(n.active()))
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}
