package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// At every system call of a checkpoint's life the process is killed, or the power is cut and some or all of what was not
// fsynced is lost. Afterwards the disk must hold the old checkpoint or the new one, whole; doing the step again must lead
// to the new one; and removing that must leave nothing behind.
func TestCutAtEverySystemCall(t *testing.T) {
	n := newScenario(t, memoryDir(t))
	calls := traceScenario(t, n)
	steps := map[string]int{"start": -1}
	for i, s := range scenario() {
		steps[s.name] = i
	}
	root := newDir()
	root.entries["manifests"] = newDir()
	root.dur["manifests"] = root.entries["manifests"]
	cuts := 0
	for i, c := range calls {
		root.apply(t, c)
		t.Run(fmt.Sprintf("%s/%d", c.step, i), func(t *testing.T) {
			n.t = t
			var l loss
			defer func() {
				if t.Failed() {
					t.Logf("cut after %s; %s", c, l)
				}
			}()
			for _, l = range root.losses(uint64(i)) {
				cuts++
				n.wantRecovery(root, l, steps[c.step])
			}
		})
	}
	t.Logf("%d cuts at %d system calls", cuts, len(calls))
}

// wantRecovery checks what becomes of a disk that was cut in a step of the scenario.
func (n *node) wantRecovery(root *inode, l loss, at int) {
	t := n.t
	t.Helper()
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		must(t, os.RemoveAll(dir))
	}
	l.write(t, root, n.dir, "")
	n.wantVolumesOfActive()
	n.restart()
	before, now := step{}, step{}
	if at > 0 {
		before = scenario()[at-1]
	}
	if at >= 0 {
		now = scenario()[at]
		n.wantOneOf(between(before, now), "after the restart")
		must(t, now.do(n))
	}
	n.wantOneOf([]diskState{now.diskState}, "when the step was done again")
	n.removeAll()
	n.wantNothingLeft()
}

// wantVolumesOfActive checks what the kubelet finds when it starts before we do: with a manifest in its directory, each
// volume of it is there and shows all of its content.
func (n *node) wantVolumesOfActive() {
	n.t.Helper()
	for _, key := range []Key{web, web.other()} {
		if _, err := os.Stat(filepath.Join(n.dirs.Manifests, key.FileName())); err != nil {
			continue
		}
		for _, volume := range []string{"config", "token"} {
			dir := filepath.Join(n.dirs.Assets, key.base(), volume)
			names, err := os.ReadDir(filepath.Join(dir, dataLink))
			if err != nil || len(names) == 0 {
				n.t.Fatalf("the active checkpoint's volume %s holds %v (%v)", dir, names, err)
			}
			for _, name := range names {
				if _, err := os.Stat(filepath.Join(dir, name.Name())); err != nil {
					n.t.Fatalf("the active checkpoint's volume %s does not show all of its content: %v", dir, err)
				}
			}
		}
	}
}

func (n *node) wantNothingLeft() {
	n.t.Helper()
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			n.t.Errorf("%s still holds %v (%v)", dir, names, err)
		}
	}
}

// memoryDir is a directory on a disk that takes no time to fsync, if there is one.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pod-checkpointer-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}
