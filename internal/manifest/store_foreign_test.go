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
		"web.yaml":                  "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"web.yaml.bak":              "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"other.yaml":                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: other\n  namespace: kube-system\n",
		"web-in-default.json":       `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`,
		"noise_and-more.json":       "kind Pod {{{",
		"kube-system_web.json.orig": string(n.manifest("v0")),
		".hidden.yaml":              "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"kube-system-gone.json":     predecessorManifest("gone"),
		".pod-checkpointer.txt":     "not ours, though it almost looks so",
	}
	for name, data := range others {
		must(t, os.WriteFile(filepath.Join(n.dirs.Manifests, name), []byte(data), 0o644))
	}
	target := filepath.Join(n.dir, "linked.yaml")
	must(t, os.Rename(filepath.Join(n.dirs.Manifests, "web.yaml.bak"), target))
	must(t, os.Symlink(target, filepath.Join(n.dirs.Manifests, "web.yaml.bak")))
	must(t, os.Symlink("nowhere", filepath.Join(n.dirs.Manifests, "dangling")))
	before := tree(t, n.dirs.Manifests)

	n.list()
	same := []string{"kube-system_web.json.orig", "web.yaml", "web.yaml.bak"}
	if got := n.store.Foreign(web); !slices.Equal(got, same) {
		t.Errorf("foreign: %q, want %q", got, same)
	}
	if err := n.store.Activate(web); err == nil || !strings.Contains(err.Error(), "web.yaml.bak") {
		t.Errorf("activated beside a foreign manifest of the same pod: %v", err)
	}
	must(t, n.store.Withdraw(web))
	n.restart()
	if diff := cmp.Diff(before, tree(t, n.dirs.Manifests)); diff != "" {
		t.Error(diff)
	}

	for _, name := range same {
		must(t, os.Remove(filepath.Join(n.dirs.Manifests, name)))
	}
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestForeignAtOurName(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	theirs := []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n")
	must(t, os.WriteFile(n.active(), theirs, 0o644))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
	if err := n.store.Activate(web); err == nil {
		t.Error("overwrote somebody else's manifest")
	}
	must(t, n.store.Withdraw(web))
	if data, err := os.ReadFile(n.active()); err != nil || string(data) != string(theirs) {
		t.Errorf("it is %q now (%v)", data, err)
	}
}

func predecessorManifest(parent string) string {
	return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + parent + `","namespace":"kube-system","annotations":{"` +
		AnnotationCheckpointOf + `":"` + parent + `"}}}`
}

// What a predecessor left of a parent goes when ours of it is stored, not before; the rest when everything is removed.
func TestPredecessor(t *testing.T) {
	n := newNode(t)
	theirs := func(parent string) (files []string) {
		for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive} {
			files = append(files, filepath.Join(dir, "kube-system-"+parent+".json"))
			must(t, os.WriteFile(files[len(files)-1], []byte(predecessorManifest(parent)), 0o600))
		}
		for _, dir := range []string{"checkpoint-secrets", "checkpoint-configmaps"} {
			dir = filepath.Join(n.dir, dir, "kube-system", parent)
			must(t, os.MkdirAll(dir, 0o700))
			files = append(files, filepath.Join(dir, "data"))
			must(t, os.WriteFile(files[len(files)-1], nil, 0o600))
		}
		return files
	}
	want := func(there bool, files []string) {
		t.Helper()
		for _, file := range files {
			if _, err := os.Lstat(file); (err == nil) != there {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	web, other := theirs("web"), theirs("other")
	lookalike := filepath.Join(n.dirs.Manifests, "kube-system-lookalike.json") // by its name only
	must(t, os.WriteFile(lookalike, []byte(predecessorManifest("another")), 0o600))

	n.restart()
	if c := n.list(); c.Name != "" {
		t.Errorf("took a predecessor's checkpoint for ours: %+v", c)
	}
	want(true, web)
	n.save("v1")
	want(false, web)
	want(true, other)
	n.activate()
	must(t, n.store.RemovePredecessors())
	want(false, other)
	want(true, []string{lookalike})
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
	if names, _ := os.ReadDir(filepath.Join(n.dir, "checkpoint-secrets")); len(names) > 0 {
		t.Errorf("left of their secrets: %v", names)
	}
}
