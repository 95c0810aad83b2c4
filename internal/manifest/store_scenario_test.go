package manifest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// The tests of crashes run one process through the life of a checkpoint, under strace. scenarioDir, in its environment,
// is the node's directory.
const scenarioDir = "CHECKPOINTER_TEST_SCENARIO_DIR"

// revision is a version of the parent pod: its volumes, below its UID, and its image.
type revision struct {
	uid    checkpoint.UID
	image  string
	config map[string]string
	token  string
}

var (
	first   = revision{"uid-1", "v1", map[string]string{"a.conf": "one", "sub/b.conf": "two"}, "secret"}
	second  = revision{"uid-2", "v2", map[string]string{"a.conf": "changed", "c.conf": "three"}, "other"}
	rotated = revision{"uid-3", "v2", map[string]string{"a.conf": "rotated", "d.conf": "four"}, "other"}
)

// step is one operation, and the checkpoint that it leaves: its revision, and whether it is active; nil: none.
type step struct {
	name   string
	do     func(n *node) error
	after  *revision
	active bool
}

func scenario() []step {
	save := func(r revision) func(*node) error {
		return func(n *node) error {
			snapshot, err := n.read(r)
			if err != nil {
				return err
			}
			return n.store.Save(n.manifest(r.image), snapshot)
		}
	}
	activate := func(n *node) error { return n.store.Activate("kube-system", "web") }
	withdraw := func(n *node) error { return n.store.Withdraw("kube-system", "web") }
	prune := func(n *node) error { return n.store.Prune("kube-system", "web") }
	remove := func(n *node) error { return n.store.Remove("kube-system", "web") }
	return []step{
		{"first save", save(first), &first, false},
		{"activation", activate, &first, true},
		{"withdrawal", withdraw, &first, false},
		{"save of another revision", save(second), &second, false},
		{"second activation", activate, &second, true},
		{"rotation while active", save(rotated), &rotated, true},
		{"second withdrawal", withdraw, &rotated, false},
		{"prune", prune, &rotated, false},
		{"removal", remove, nil, false},
	}
}

func newScenario(t testing.TB, dir string) *node {
	t.Helper()
	n := newNodeIn(t, dir)
	for _, r := range []revision{first, second, rotated} {
		n.uid = r.uid
		n.mount("config", "kubernetes.io~configmap", r.config)
		n.mount("token", "kubernetes.io~projected", map[string]string{"token": r.token})
	}
	return n
}

func (n *node) read(r revision) (*Snapshot, error) {
	return n.store.Snapshot(n.kubelet, r.uid, volumes)
}

// digest is what the store finds of a revision once it is saved.
func (n *node) digest(r *revision) string {
	n.t.Helper()
	if n.digests[r] == "" {
		snapshot, err := n.read(*r)
		must(n.t, err)
		n.digests[r] = Digest(n.manifest(r.image), snapshot)
	}
	return n.digests[r]
}

// TestScenarioProcess is that process. What fails is tried again once, as the agent does. The removal of a path
// /step/<name>, which never exists, marks the begin of each step in the trace.
func TestScenarioProcess(t *testing.T) {
	dir := os.Getenv(scenarioDir)
	if dir == "" {
		return // nobody asked for it: runScenario does
	}
	runtime.LockOSThread() // strace counts the calls of each thread
	n := newNodeIn(t, dir)
	for _, s := range scenario() {
		if s.after != nil {
			n.digest(s.after)
		}
	}
	_ = os.Remove("/step/start")
	n.twice(func() (err error) {
		n.store, err = OpenStore(n.dirs)
		return err
	})
	before := step{}
	for _, now := range scenario() {
		_ = os.Remove("/step/" + now.name)
		n.twice(func() error {
			err := now.do(n)
			if err != nil {
				after := *n
				after.restart()
				after.wantOneOf([]step{before, now}, "after an error")
			}
			return err
		})
		n.twice(func() error {
			disk, err := n.store.List()
			if err == nil && !n.isAfter(now, disk.Checkpoints) {
				err = fmt.Errorf("listed after %s: %+v", now.name, disk)
			}
			return err
		})
		before = now
	}
	_ = os.Remove("/step/end")
}

// twice tries again what failed.
func (n *node) twice(do func() error) {
	n.t.Helper()
	if err := do(); err != nil {
		n.t.Log(err)
		must(n.t, do())
	}
}

// wantOneOf checks that what is on disk is what one of the steps leaves.
func (n *node) wantOneOf(allowed []step, when string) {
	n.t.Helper()
	disk, err := n.store.List()
	must(n.t, err)
	if !slices.ContainsFunc(allowed, func(s step) bool { return n.isAfter(s, disk.Checkpoints) }) {
		n.t.Fatalf("%s: the disk is in none of the allowed states: %+v", when, disk)
	}
}

func (n *node) isAfter(s step, got []checkpoint.Checkpoint) bool {
	n.t.Helper()
	if s.after == nil {
		return len(got) == 0
	}
	active := checkpoint.Missing
	if s.active {
		active = checkpoint.Intact
	}
	return len(got) == 1 && got[0].Digest == n.digest(s.after) && got[0].Stored == checkpoint.Intact && got[0].Active == active
}

// runScenario runs the process under strace and returns its output.
func runScenario(t testing.TB, n *node, straceArgs ...string) (output []byte, err error) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		needOrSkip(t, "strace")
	}
	cmd := exec.Command("strace", append(append([]string{"-f"}, straceArgs...), os.Args[0], "-test.run=^TestScenarioProcess$", "-test.v")...)
	cmd.Env = append(os.Environ(), scenarioDir+"="+n.dir, "GOMAXPROCS=1", "GOGC=off")
	output, err = cmd.CombinedOutput()
	if bytes.Contains(output, []byte("PTRACE_TRACEME")) || bytes.Contains(output, []byte("ptrace(")) {
		needOrSkip(t, "the right to trace processes")
	}
	return output, err
}

// needOrSkip says what this machine lacks for a test. On CI that fails.
func needOrSkip(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal("this test needs " + what)
	}
	t.Skip("NOT TESTED: this test needs " + what)
}
