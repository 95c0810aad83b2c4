package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestForeignManifests(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	others := map[string]string{
		"web.yaml":              "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"web.yaml.bak":          "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"other.yaml":            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: other\n  namespace: kube-system\n",
		"web-in-default.json":   `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`,
		"noise_and-more.json":   "kind Pod {{{",
		".hidden.yaml":          "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"kube-system-web.json":  string(n.manifest("predecessor")),
		".pod-checkpointer.txt": "not ours, though it almost looks so",
	}
	for name, data := range others {
		must(t, os.WriteFile(filepath.Join(n.dirs.Manifests, name), []byte(data), 0o644))
	}
	before := tree(t, n.dirs.Manifests)

	n.list()
	if got, want := n.store.Foreign("kube-system", "web"), []string{"web.yaml", "web.yaml.bak"}; !slices.Equal(got, want) {
		t.Errorf("foreign: %q, want %q", got, want)
	}
	if err := n.store.Activate("kube-system", "web"); err == nil || !strings.Contains(err.Error(), "web.yaml.bak") {
		t.Errorf("activated beside a foreign manifest of the same pod: %v", err)
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	n.restart()
	if diff := cmp.Diff(before, tree(t, n.dirs.Manifests)); diff != "" {
		t.Error(diff)
	}

	must(t, os.Remove(filepath.Join(n.dirs.Manifests, "web.yaml")))
	must(t, os.Remove(filepath.Join(n.dirs.Manifests, "web.yaml.bak")))
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestForeignAtOurName(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	theirs := []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n")
	must(t, os.WriteFile(n.active(), theirs, 0o644))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
	if err := n.store.Activate("kube-system", "web"); err == nil {
		t.Error("overwrote somebody else's manifest")
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	if data, err := os.ReadFile(n.active()); err != nil || string(data) != string(theirs) {
		t.Errorf("it is %q now (%v)", data, err)
	}
}
