package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestSaveAndActivate(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	want := checkpoint.Checkpoint{
		Namespace: "kube-system", Name: "web", Lineage: "kube-system/Pod/web", ParentUID: uid, Containers: []string{"web"},
		SavedAt: n.list().SavedAt, Manifest: ManifestDigest(n.manifest("v1")), Digest: Digest(n.manifest("v1"), n.snapshot()), Stored: checkpoint.Intact,
	}
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error(diff)
	}
	n.activate()
	want.Active = checkpoint.Intact
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error(diff)
	}
	n.restart()
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error("after a restart:", diff)
	}
	must(t, n.store.Withdraw(web))
	must(t, n.store.Withdraw(web))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
}

func TestNothingOfOursIsLeftAfterRemove(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	if err := n.store.Remove(web); err == nil {
		t.Fatal("removed the assets of a manifest that the kubelet has")
	}
	must(t, n.store.Withdraw(web))
	must(t, n.store.Remove(web))
	must(t, n.store.Remove(web))
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s still holds %v (%v)", dir, names, err)
		}
	}
	if diff := cmp.Diff(checkpoint.Checkpoint{}, n.list()); diff != "" {
		t.Error(diff)
	}
}

func TestModesOfOurOwn(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	for path, want := range map[string]fs.FileMode{
		n.stored(): 0o600, n.active(): 0o600,
		n.dirs.Inactive: 0o700 | fs.ModeDir, n.dirs.Assets: 0o700 | fs.ModeDir, n.asset(""): 0o700 | fs.ModeDir,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
}

func TestWhatIsSoAlreadyIsNotWritten(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	before := tree(t, n.dir)
	n.save("v1")
	n.activate()
	must(t, n.store.Restore(web))
	must(t, n.store.Prune(web))
	n.restart()
	n.save("v1")
	if diff := cmp.Diff(before, tree(t, n.dir)); diff != "" {
		t.Error(diff)
	}
}

func TestInactiveDirectoryLost(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	must(t, os.RemoveAll(n.dirs.Inactive))
	n.wantFiles(checkpoint.Missing, checkpoint.Intact)
	must(t, n.store.Restore(web))
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestStaticPodDirectoryMissing(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	must(t, os.RemoveAll(n.dirs.Manifests))
	if disk, err := n.store.List(); err == nil || disk.Known {
		t.Errorf("listed %+v without a static pod directory", disk)
	}
	if err := n.store.Activate(web); err == nil {
		t.Error("activated without a static pod directory")
	}
	_, err := OpenStore(n.dirs)
	if err == nil || !strings.Contains(err.Error(), n.dirs.Manifests) || !strings.Contains(err.Error(), "--manifests-dir") {
		t.Errorf("got %v", err)
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	leftovers := []string{
		filepath.Join(n.dirs.Manifests, tempPrefix+"1"), filepath.Join(n.dirs.Inactive, tempPrefix+"2"), n.asset(tempPrefix + "3/sub"),
		filepath.Join(n.dirs.Assets, "kube-system_gone/volume"),
	}
	theirs := []string{
		filepath.Join(n.dirs.Manifests, ".kube-apiserver.yaml.swp"), filepath.Join(n.dirs.Inactive, ".hidden"),
		filepath.Join(n.dirs.Assets, "lost+found/volume"),
	}
	for _, path := range slices.Concat(leftovers, theirs) {
		must(t, os.MkdirAll(path, 0o700))
	}
	n.restart()
	for _, path := range leftovers {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	for _, path := range theirs {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestNodeIsRecordedUntilItIsRecordedAnew(t *testing.T) {
	n := newNode(t)
	if uid, err := n.store.Node("node-1"); !errors.Is(err, ErrNoNode) {
		t.Errorf("before anything was recorded: %q, %v", uid, err)
	}
	for _, uid := range []string{"one", "two"} {
		must(t, n.store.RecordNode("node-1", uid))
		n.restart()
		if recorded, err := n.store.Node("node-1"); err != nil || recorded != uid {
			t.Errorf("recorded %s, and read %q, %v", uid, recorded, err)
		}
	}
	if uid, err := n.store.Node("node-2"); err == nil {
		t.Errorf("the record of node-1 serves node-2, as %q", uid)
	}
	must(t, os.WriteFile(filepath.Join(n.dirs.Inactive, stateFile), nil, 0o600))
	if uid, err := n.store.Node("node-1"); err == nil || errors.Is(err, ErrNoNode) {
		t.Errorf("a damaged record reads as %q, %v", uid, err)
	}
}
