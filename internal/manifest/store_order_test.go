package manifest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// Everything that gets its name by a rename is whole and durable before it, and its name right after it.
func TestOrderOfEachWrite(t *testing.T) {
	n := newScenario(t, memoryDir(t))
	calls := traceScenario(t, n)
	renames := 0
	for i, c := range calls {
		if c.name != "rename" {
			continue
		}
		renames++
		var before []string
		for _, earlier := range calls[:i] {
			if earlier.path == c.path {
				before = append(before, earlier.name)
			}
		}
		allowed := [][]string{
			{"open", "write", "chown", "chmod", "fsync"}, // a file
			{"mkdir", "chown", "chmod", "fsync"},         // a generation
			{"symlink"},
		}
		if !slices.ContainsFunc(allowed, func(want []string) bool { return slices.Equal(want, before) }) {
			t.Errorf("%s: before its rename: %q", c.to, before)
		}
		if dir := path.Dir(c.to); i+1 == len(calls) || calls[i+1].name != "fsync" || calls[i+1].path != dir {
			t.Errorf("%s: the directory is not made durable after the rename", c.to)
		}
		if !strings.HasPrefix(path.Base(c.path), tempPrefix) {
			t.Errorf("%s: renamed from %s, which the next start does not sweep", c.to, c.path)
		}
	}
	if renames == 0 {
		t.Error("nothing was renamed: this test saw nothing")
	}
}

// Assets come before the stored manifest, that before the active one; on the way out it is the other way round.
func TestOrderOfAssetsStoredAndActive(t *testing.T) {
	n := newScenario(t, memoryDir(t))
	calls := traceScenario(t, n)
	at := func(step, name, prefix string, last bool) int {
		found := -1
		for i, c := range calls {
			target := c.path + c.to
			if c.name == "rename" {
				target = c.to
			}
			if c.step == step && c.name == name && strings.HasPrefix(target, prefix) && (last || found < 0) {
				found = i
			}
		}
		if found < 0 {
			t.Fatalf("%s: no %s in %s", step, name, prefix)
		}
		return found
	}
	const assets, stored, active = "checkpoint-assets/", "inactive-manifests/", "manifests/"
	inOrder := []int{
		at("first save", "fsync", assets, true),
		at("first save", "rename", stored, false),
		at("activation", "rename", active, false),
		at("save of another revision", "rename", assets+"kube-system_web/commit.json", false),
		at("save of another revision", "rename", assets+"kube-system_web/config/..data", false),
		at("save of another revision", "rename", stored, false),
		at("save of another revision", "unlink", assets+"kube-system_web/commit.json", false),
		at("second withdrawal", "unlink", active, false),
		at("removal", "unlink", stored, false),
		at("removal", "unlink", assets, false),
	}
	if !slices.IsSorted(inOrder) {
		t.Errorf("the steps came in the order %v", inOrder)
	}
	for _, c := range calls {
		if c.step == "rotation while active" && !strings.HasPrefix(c.path, assets) {
			t.Errorf("a rotation touches more than the assets: %s", c)
		}
	}
}
