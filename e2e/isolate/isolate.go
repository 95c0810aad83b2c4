//go:build linux

// Package isolate runs a program in mount, network, PID, IPC and UTS namespaces
// of its own, so that it may mount, configure and start what it likes under the
// usual names, and nothing of it is left afterwards, however it ends.
//
// The program re-executes itself. Four processes of one binary take part:
//
//	outer    what the user started: prepares, starts the others, reports
//	janitor  outlives the outer process and removes what namespaces don't
//	init     process 1 inside: sets the machine up, reaps orphans
//	main     the program itself
//
// Outer dies: the kernel kills init (Pdeathsig). Init or main ends: the kernel
// kills every process inside and drops the mounts and interfaces. Then the
// janitor removes the temporary directory and the cgroups. What even the janitor
// couldn't remove is swept by the next run.
package isolate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Run is one isolated run.
type Run struct {
	// Dir is a temporary directory on the machine's disk, removed at the end.
	Dir string
}

// Machines is how many machines a run has room for. The second, if any, is
// inside of the first; see Another.
const Machines = 2

// Cgroup names the cgroup of a machine, counted from 1, in every hierarchy.
func (r Run) Cgroup(machine int) string {
	return fmt.Sprintf("%s-%d", filepath.Base(r.Dir), machine)
}

// Options say what happens around the program.
type Options struct {
	// Prefix starts the names of the temporary directory and the cgroups.
	// Anything so named that no living run holds is removed.
	Prefix string
	// Prepare runs outside, where the network is. Its context ends with SIGINT
	// or SIGTERM.
	Prepare func(context.Context, Run) error
	// Setup runs inside, as process 1, before the program. Mounts are private
	// by then, and /proc is that of the PID namespace.
	Setup func(Run) error
	// Failed runs outside after a non-zero exit, before Run.Dir is removed.
	Failed func(Run)
}

// The environment tells a process which of the four it is.
const (
	stageVariable = "ISOLATE_STAGE"
	dirVariable   = "ISOLATE_DIR"
)

// Enter returns in the isolated process only. The process that calls it from
// outside runs itself inside instead and exits with the status of that.
func Enter(o Options) Run {
	run := Run{Dir: os.Getenv(dirVariable)}
	switch os.Getenv(stageVariable) {
	case "main":
		return run
	case "init":
		os.Exit(initMain(o, run))
	case "janitor":
		os.Exit(janitorMain(run))
	default:
		os.Exit(outerMain(o))
	}
	panic("unreachable")
}

// environment is the environment of the given stage.
func environment(stage string, run Run) []string {
	rest := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, stageVariable+"=") || strings.HasPrefix(v, dirVariable+"=")
	})
	return append(rest, stageVariable+"="+stage, dirVariable+"="+run.Dir)
}

func complain(doing string, err error) int {
	fmt.Fprintf(os.Stderr, "e2e: %s: %v\n", doing, err)
	return 1
}
