package manifest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var exhaustive = flag.Bool("exhaustive", false, "let every single system call fail, also of those that only read; and live more lives")

// faults are the ways in which system calls are made to fail. What only reads is among them: what can't be read must not
// be taken for something that is not there.
var faults = []struct {
	call   string
	errors []string
	every  int // without -exhaustive, one in so many
}{
	{"mkdirat", []string{"EIO", "ENOSPC", "EROFS", "EACCES"}, 1},
	{"write", []string{"EIO", "ENOSPC"}, 1},
	{"fchown", []string{"EPERM"}, 1},
	{"fchmod", []string{"EPERM"}, 1},
	{"fsync", []string{"EIO"}, 1},
	{"renameat", []string{"EIO", "ENOSPC", "EROFS"}, 1},
	{"symlinkat", []string{"ENOSPC", "EROFS"}, 1},
	{"unlinkat", []string{"EIO", "EROFS"}, 1},
	{"openat", []string{"EIO", "ENOSPC", "EROFS", "EACCES", "EMFILE"}, 29},
	{"readlinkat", []string{"EIO"}, 7},
	{"getdents64", []string{"EIO"}, 11},
	{"newfstatat", []string{"EIO"}, 11},
}

// Every system call of a checkpoint's life fails once. The step that it belongs to must leave the old checkpoint or the
// new one, whole, and lead to the new one when it is tried again; at the end nothing may be left behind.
func TestFaultAtEverySystemCall(t *testing.T) {
	for _, fault := range faults {
		t.Run(fault.call, func(t *testing.T) {
			t.Parallel()
			if *exhaustive {
				fault.every = 1
			}
			from, to := countCalls(t, fault.call)
			fault.every *= slowdown
			for at := from; at < to; at += fault.every {
				n := newScenario(t, memoryDir(t))
				n.restarts = at/2%2 == 1
				inject := fmt.Sprintf("inject=%s:error=%s:when=%d", fault.call, fault.errors[at%len(fault.errors)], at+1)
				output, err := runScenario(t, n, "--seccomp-bpf", "-o", "/dev/null", "-e", "trace="+fault.call, "-e", inject)
				if err != nil {
					t.Fatalf("%s: %v\n%s", inject, err, output)
				}
				n.wantNothingLeft()
			}
			t.Logf("%d calls, of which one in %d failed", to-from, fault.every)
		})
	}
}

// The process is killed in earnest, at the system calls that put something in its place. TestCutAtEverySystemCall says
// what must hold then, at these calls and at all others.
func TestKill(t *testing.T) {
	for _, call := range []string{"renameat", "symlinkat"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			from, to := countCalls(t, call)
			for at := from; at < to; at += slowdown {
				n := newScenario(t, memoryDir(t))
				inject := fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, at+1)
				if output, err := runScenario(t, n, "-o", "/dev/null", "-e", "trace="+call, "-e", inject); err == nil {
					t.Fatalf("%s: it was not killed\n%s", inject, output)
				}
				n.restart()
				var allowed []diskState
				before := step{}
				for _, now := range scenario() {
					allowed = append(allowed, between(before, now)...)
					before = now
				}
				n.wantOneOf(allowed, inject)
				n.removeAll()
				n.wantNothingLeft()
			}
			t.Logf("killed %d times", to-from)
		})
	}
}

// countCalls is how often the scenario's thread has made a call before the scenario begins, and when it ends.
func countCalls(t *testing.T, name string) (from, to int) {
	t.Helper()
	log := logScenario(t, newScenario(t, memoryDir(t)), name+",unlinkat")
	for line := range strings.Lines(log) {
		switch {
		case strings.Contains(line, escape("/step/start")):
			from = to
		case strings.Contains(line, escape("/step/end")):
			return from, to
		}
		if strings.HasPrefix(line, name+"(") {
			to++
		}
	}
	t.Fatal("the scenario did not end")
	return from, to
}
