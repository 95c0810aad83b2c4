package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"checkpointer": main, "fake-node": fakeNode})
}

// TestScript runs the stories in testdata/script against the real command line.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error { // abstract sockets are the whole machine's
			env.Setenv("CHECKPOINTER_PROBE_SOCKET", "@"+env.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"await": await,
		},
	})
}

// exits runs a command to its end and compares its exit code: exits CODE COMMAND...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, failure := 0, (*exec.ExitError)(nil)
	if err = ts.Exec(args[1], args[2:]...); errors.As(err, &failure) {
		got = failure.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// await waits until a file exists, and holds a text if one is given: await FILE [TEXT]
func await(ts *testscript.TestScript, _ bool, args []string) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-look.C {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if len(args) == 1 && !errors.Is(err, os.ErrNotExist) || len(args) == 2 && strings.Contains(string(data), args[1]) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited too long for %q; the file: %v\n%s", args, err, data)
		}
	}
}
