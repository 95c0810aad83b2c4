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
// is the node's directory; scenarioRestart has it start anew after an error.
const (
	scenarioDir     = "CHECKPOINTER_TEST_SCENARIO_DIR"
	scenarioRestart = "CHECKPOINTER_TEST_SCENARIO_RESTART"
)

// revision is a version of the parent pod: its volumes, below the UID dir, its image, and its own UID.
type revision struct {
	dir    checkpoint.UID
	image  string
	config map[string]string
	token  string
	uid    checkpoint.UID
}

var (
	first     = revision{"dir-1", "v1", map[string]string{"a.conf": "one", "sub/b.conf": "two"}, "secret", uid}
	second    = revision{"dir-2", "v2", map[string]string{"a.conf": "changed", "c.conf": "three"}, "other", uid}
	rotated   = revision{"dir-3", "v2", map[string]string{"a.conf": "rotated", "d.conf": "four"}, "other", uid}
	successor = revision{"dir-4", "v3", map[string]string{"a.conf": "of a successor"}, "third", "uid-of-a-successor"}
	another   = revision{"dir-5", "v3", map[string]string{"a.conf": "of another"}, "third", "uid-of-another"}
)

// step is one operation, and what it leaves.
type step struct {
	name string
	do   func(n *node) error
	diskState
}

// diskState is what there is of a pod: its checkpoint and the generation before, each with its revision, nil if there is
// none, and whether it is active.
type diskState struct {
	present  *revision
	active   bool
	previous *revision
	fallback bool
}

func scenario() []step {
	save := func(r revision) func(*node) error {
		return func(n *node) error {
			snapshot, err := n.read(r)
			if err != nil {
				return err
			}
			return n.store.Save(n.manifestOf(r.uid, r.image), snapshot)
		}
	}
	activate := func(n *node) error { return n.store.Activate(web) }
	withdraw := func(n *node) error { return n.store.Withdraw(web) }
	prune := func(n *node) error { return n.store.Prune(web) }
	remove := func(n *node) error { return n.store.Remove(web) }
	fallBack := func(n *node) error { return n.store.Retry(web.other()) }
	withdrawPrevious := func(n *node) error { return n.store.Withdraw(web.other()) }
	removePrevious := func(n *node) error { return n.store.Remove(web.other()) }
	return []step{
		{"first save", save(first), diskState{present: &first}},
		{"activation", activate, diskState{present: &first, active: true}},
		{"withdrawal", withdraw, diskState{present: &first}},
		{"save of another revision", save(second), diskState{present: &second}},
		{"second activation", activate, diskState{present: &second, active: true}},
		{"rotation while active", save(rotated), diskState{present: &rotated, active: true}},
		{"second withdrawal", withdraw, diskState{present: &rotated}},
		{"prune", prune, diskState{present: &rotated}},
		{"save of a successor", save(successor), diskState{present: &successor, previous: &rotated}},
		{"retry of the one before", fallBack, diskState{present: &successor, previous: &rotated, fallback: true}},
		{"withdrawal of the one before", withdrawPrevious, diskState{present: &successor, previous: &rotated}},
		{"save of another successor", save(another), diskState{present: &another, previous: &successor}},
		{"removal of the one before", removePrevious, diskState{present: &another}},
		{"removal", remove, diskState{}},
	}
}

func newScenario(t testing.TB, dir string) *node {
	t.Helper()
	n := newNodeIn(t, dir)
	for _, r := range []revision{first, second, rotated, successor, another} {
		n.uid = r.dir
		n.mount("config", "kubernetes.io~configmap", r.config)
		n.mount("token", "kubernetes.io~projected", map[string]string{"token": r.token})
	}
	return n
}

func (n *node) read(r revision) (*Snapshot, error) {
	return n.store.Snapshot(n.kubelet, r.dir, volumes)
}

// digest is what the store finds of a revision once it is saved, and is the present one or the one before.
func (n *node) digest(key Key, r *revision) string {
	n.t.Helper()
	if n.digests[key][r] == "" {
		snapshot, err := n.read(*r)
		must(n.t, err)
		record, err := parse(n.manifestOf(r.uid, r.image), false, n.dirs.Assets)
		must(n.t, err)
		if key.Previous {
			record, err = record.asPrevious(n.dirs.Assets)
			must(n.t, err)
		}
		n.digests[key][r] = Digest(record.manifest, snapshot)
	}
	return n.digests[key][r]
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
		for key, r := range map[Key]*revision{web: s.present, web.other(): s.previous} {
			if r != nil {
				n.digest(key, r)
			}
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
			if err != nil && os.Getenv(scenarioRestart) != "" {
				n.restart()
				n.wantOneOf(between(before, now), "after an error")
			}
			return err
		})
		n.twice(func() error {
			disk, err := n.store.List()
			if err == nil && !n.isIn(now.diskState, disk.Checkpoints) {
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

// between are the states that may be found when a step was interrupted. One generation becomes the one before before the
// next one takes its place.
func between(before, now step) []diskState {
	all := []diskState{before.diskState, now.diskState}
	if now.previous != nil && now.previous == before.present {
		kept := before.diskState
		kept.previous = now.previous
		all = append(all, kept)
	}
	return all
}

// wantOneOf checks that what is on disk is one of the states.
func (n *node) wantOneOf(allowed []diskState, when string) {
	n.t.Helper()
	disk, err := n.store.List()
	must(n.t, err)
	if !slices.ContainsFunc(allowed, func(s diskState) bool { return n.isIn(s, disk.Checkpoints) }) {
		n.t.Fatalf("%s: the disk is in none of the allowed states: %+v", when, disk)
	}
}

func (n *node) isIn(s diskState, got []checkpoint.Checkpoint) bool {
	n.t.Helper()
	if s.previous != nil {
		if len(got) == 0 || !got[0].Previous || !n.isRevision(got[0], s.previous, s.fallback) {
			return false
		}
		got = got[1:]
	}
	if s.present == nil {
		return len(got) == 0
	}
	return len(got) == 1 && !got[0].Previous && n.isRevision(got[0], s.present, s.active)
}

func (n *node) isRevision(c checkpoint.Checkpoint, r *revision, active bool) bool {
	n.t.Helper()
	want := checkpoint.Missing
	if active {
		want = checkpoint.Intact
	}
	return c.Digest == n.digest(Key{c.Namespace, c.Name, c.Previous}, r) && c.Stored == checkpoint.Intact && c.Active == want
}

// removeAll ends a checkpoint's life, whatever state it is in.
func (n *node) removeAll() {
	n.t.Helper()
	for _, key := range []Key{web, web.other()} {
		must(n.t, n.store.Withdraw(key))
		must(n.t, n.store.Remove(key))
	}
}

// runScenario runs the process under strace and returns its output.
func runScenario(t testing.TB, n *node, straceArgs ...string) (output []byte, err error) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		needOrSkip(t, "strace")
	}
	cmd := exec.Command("strace", append(append([]string{"-f"}, straceArgs...), os.Args[0], "-test.run=^TestScenarioProcess$", "-test.v")...)
	cmd.Env = append(os.Environ(), scenarioDir+"="+n.dir, "GOMAXPROCS=1", "GOGC=off")
	if n.restarts {
		cmd.Env = append(cmd.Env, scenarioRestart+"=true")
	}
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
