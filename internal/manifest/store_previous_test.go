package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// generations are what the store lists, the one before first, as "<UID> <stored> <active>".
func (n *node) generations() (all []string) {
	n.t.Helper()
	disk, err := n.store.List()
	must(n.t, err)
	files := map[checkpoint.File]string{checkpoint.Missing: "missing", checkpoint.Altered: "altered", checkpoint.Intact: "intact"}
	for _, c := range disk.Checkpoints {
		word := string(c.ParentUID) + " " + files[c.Stored] + " " + files[c.Active]
		if c.Previous {
			word = "previous " + word
		}
		all = append(all, word)
	}
	return all
}

func (n *node) wantGenerations(want ...string) {
	n.t.Helper()
	if got := n.generations(); !slices.Equal(got, want) {
		n.t.Fatalf("listed %q, want %q", got, want)
	}
}

// saveAs saves kube-system/web as the pod with the given UID.
func (n *node) saveAs(uid checkpoint.UID, image string) {
	n.t.Helper()
	must(n.t, n.store.Save(n.manifestOf(uid, image), n.snapshot()))
}

func TestGenerationBeforeIsKeptWithItsAssets(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	before := seen(t, n.asset("config"))
	n.mount("config", "kubernetes.io~configmap", map[string]string{"a.conf": "broken"})
	n.saveAs("uid-2", "v2")
	n.wantGenerations("previous uid-1 intact missing", "uid-2 intact missing")
	n.restart()
	n.wantGenerations("previous uid-1 intact missing", "uid-2 intact missing")

	if diff := cmp.Diff(before, seen(t, filepath.Join(n.dirs.Assets, "kube-system_web_previous", "config"))); diff != "" {
		t.Error("its assets are not what they were:", diff)
	}
	must(t, n.store.Activate(web.other()))
	n.wantGenerations("previous uid-1 intact intact", "uid-2 intact missing")
	data, err := os.ReadFile(filepath.Join(n.dirs.Manifests, web.other().FileName()))
	must(t, err)
	mounted := filepath.Join(n.dirs.Assets, "kube-system_web_previous", "config")
	if !strings.Contains(string(data), `"`+mounted+`"`) || !strings.Contains(string(data), `"v1"`) {
		t.Errorf("activated %s", data)
	}
	n.restart()
	n.wantGenerations("previous uid-1 intact intact", "uid-2 intact missing")
}

func TestOnlyOneGenerationIsActive(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-2", "v2")
	n.activate()
	for _, restarted := range []bool{false, true} {
		if restarted {
			n.restart()
		}
		if err := n.store.Activate(web.other()); err == nil || !strings.Contains(err.Error(), "other generation") {
			t.Errorf("activated beside the present one: %v", err)
		}
	}
	must(t, n.store.Withdraw(web))
	must(t, n.store.Activate(web.other()))
	if err := n.store.Retry(web); err == nil || !strings.Contains(err.Error(), "other generation") {
		t.Errorf("activated beside the one before: %v", err)
	}
	n.wantGenerations("previous uid-1 intact intact", "uid-2 intact missing")
}

func TestGenerationBeforeIsTheLastOne(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-1", "v2")
	n.wantGenerations("uid-1 intact missing") // the same pod
	n.saveAs("uid-2", "v3")
	n.saveAs("uid-2", "v3")
	n.saveAs("uid-3", "v4")
	n.wantGenerations("previous uid-2 intact missing", "uid-3 intact missing")

	// While the one before runs, it is what works: what failed in between does not replace it.
	must(t, n.store.Activate(web.other()))
	n.wantGenerations("previous uid-2 intact intact", "uid-3 intact missing")
	n.saveAs("uid-4", "v5")
	n.wantGenerations("previous uid-2 intact intact", "uid-4 intact missing")
}

func TestGenerationThatFailedIsNotKept(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-2", "v2")
	disk, err := n.store.List()
	must(t, err)
	failed := disk.Checkpoints[1]
	must(t, n.store.Mark(failed.Lineage, checkpoint.Marks{Failed: failed.Manifest}))
	for _, restarted := range []bool{false, true} {
		if restarted {
			n.restart()
		}
		n.wantGenerations("previous uid-1 intact missing", "uid-2 intact missing")
	}
	n.saveAs("uid-3", "v3")
	n.wantGenerations("previous uid-1 intact missing", "uid-3 intact missing")
}

func TestGenerationThatIsNotWholeIsNotKept(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-2", "v2")
	must(t, os.Truncate(n.asset("token/token"), 0))
	n.saveAs("uid-3", "v3")
	n.wantGenerations("previous uid-1 intact missing", "uid-3 intact missing")
}

func TestGenerationsAreRemovedOneByOne(t *testing.T) {
	n := newNode(t)
	n.saveAs("uid-1", "v1")
	n.saveAs("uid-2", "v2")
	must(t, n.store.Remove(web))
	n.wantGenerations("previous uid-1 intact missing")
	n.restart()
	n.wantGenerations("previous uid-1 intact missing")
	must(t, os.Remove(filepath.Join(n.dirs.Inactive, web.other().FileName())))
	must(t, n.store.Restore(web.other()))
	must(t, n.store.Activate(web.other()))
	must(t, n.store.Withdraw(web.other()))
	must(t, n.store.Prune(web.other()))
	must(t, n.store.Remove(web.other()))
	n.wantNothingLeft()
}

func TestTimeOfASave(t *testing.T) {
	n := newNode(t)
	start := time.Now().Add(-time.Second) // the clock of the file system is a coarse one
	n.save("v1")
	saved := n.list().SavedAt
	if saved.Before(start) || saved.After(time.Now().Add(time.Second)) {
		t.Errorf("saved at %v, and it is %v", saved, time.Now())
	}
	old := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(n.stored(), old, old))
	n.restart()
	n.save("v1")
	if got := n.list().SavedAt; !got.Equal(old) {
		t.Errorf("the same, saved again, is of %v, want %v", got, old)
	}
	must(t, os.Remove(n.stored()))
	if got := n.list().SavedAt; !got.IsZero() {
		t.Errorf("what is not there is of %v", got)
	}
}

func TestFileNamesAreUnambiguous(t *testing.T) {
	keys := []Key{
		{"a-b", "c", false},
		{"a", "b-c", false},
		{"a", "previous", false},
		{"a", "previous", true},
		{"previous", "previous", false},
		{"a", "b", false},
		{"a", "b", true},
	}
	files := make(map[string]Key)
	for _, key := range keys {
		name := key.FileName()
		if other, taken := files[name]; taken {
			t.Errorf("%+v and %+v share the file %s", key, other, name)
		}
		files[name] = key
		if !mayBeOurs(name) || isPrevious(name) != key.Previous {
			t.Errorf("%s is not taken for the file of %+v", name, key)
		}
	}
}
