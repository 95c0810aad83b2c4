package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// settle waits until the store reads no asset again without a reason.
func (n *node) settle() {
	n.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		n.list()
		if n.store.records[web.FileName()].assets != (stamp{}) {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatal("the assets are read again and again")
		}
	}
}

// What a watch of the directories tells of is read again, and nothing else: that is what keeps List cheap.
func TestTouchedAssetsAreReadAgain(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.settle()
	good := n.list().Digest
	generation, err := os.Readlink(n.asset("token/..data"))
	must(t, err)
	dir := n.asset("token/" + generation)
	if dirs := n.store.AssetDirs(); !slices.Contains(dirs, dir) || !slices.Contains(dirs, n.asset("")) || !slices.Contains(dirs, n.asset("config/mnt/inner")) {
		t.Errorf("%s is not among the directories to watch: %q", dir, dirs)
	}
	must(t, os.Truncate(filepath.Join(dir, "token"), 1))
	n.store.Touched(map[string]bool{n.dirs.Manifests: true, n.asset("") + "-2": true})
	if n.list().Digest != good {
		t.Error("read again without a reason")
	}
	for _, touched := range []string{dir, n.asset("token"), n.dirs.Assets, "/"} {
		n.save("v1")
		n.settle()
		must(t, os.Truncate(filepath.Join(dir, "token"), 1))
		n.store.Touched(map[string]bool{touched: true})
		if n.list().Digest == good {
			t.Errorf("a change in %s: not read again", touched)
		}
		want := Problem{n.asset(""), "token"}
		if got := n.store.Problems(); len(got) != 1 || got[0].Path != want.Path || !strings.Contains(got[0].What, want.What) {
			t.Errorf("problems: %+v", got)
		}
	}
	n.save("v1")
	n.list()
	if got := n.store.Problems(); len(got) > 0 {
		t.Errorf("repaired, and still: %+v", got)
	}
}

// A file beside two generations is told once, of the one that is active.
func TestForeignManifestBesideTwoGenerations(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-2", "v2")
	must(t, n.store.Activate(web.other()))
	theirs := filepath.Join(n.dirs.Manifests, "web.yaml")
	must(t, os.WriteFile(theirs, []byte("kind: Pod\nmetadata: {name: web, namespace: kube-system}\n"), 0o600))
	n.generations()
	if got := n.store.Problems(); len(got) != 1 || got[0].Path != theirs || !strings.Contains(got[0].What, "the active checkpoint") {
		t.Errorf("problems: %+v", got)
	}
	must(t, n.store.Withdraw(web.other()))
	if err := n.store.Activate(web); !IsProblem(err) {
		t.Errorf("activated beside it: %v", err)
	}
}

// What can't be repaired is told, from the first look on, and neither taken for a checkpoint nor touched.
func TestStoredFilesThatAreNoCheckpointAreProblems(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	must(t, os.Truncate(n.stored(), 30))
	must(t, os.Mkdir(filepath.Join(n.dirs.Inactive, "kube-system_dir.json"), 0o700))
	must(t, os.WriteFile(filepath.Join(n.dirs.Inactive, "notes.txt"), nil, 0o600)) // nor is it called like one
	n.restart()
	n.list()
	var paths []string
	for _, p := range n.store.Problems() {
		paths = append(paths, p.Path)
	}
	if want := []string{filepath.Join(n.dirs.Inactive, "kube-system_dir.json"), n.stored()}; !slices.Equal(paths, want) {
		t.Errorf("problems at %q, want %q", paths, want)
	}
	if _, err := os.Stat(n.asset("config")); err != nil {
		t.Errorf("its assets were removed: %v", err)
	}
	n.save("v1")
	n.list()
	if got := n.store.Problems(); len(got) != 1 {
		t.Errorf("after a save: %+v", got)
	}
}
