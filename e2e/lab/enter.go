//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/isolate"
)

// prefix names everything that a run leaves outside its namespaces.
const prefix = "pod-checkpointer-e2e-"

// here is the machine that this process is inside of.
var here machine

// numberVariable is set for the second machine.
const numberVariable = "LAB_MACHINE"

// Prepare is work that needs the network or the real machine, such as a build.
type Prepare func(context.Context) error

// Main is for TestMain: it runs the tests on a machine of their own and exits.
// Where that can't be, it says so and exits with 0, or with 1 if CI is "true".
func Main(m *testing.M, prepare ...Prepare) {
	if err := possible(); err != nil {
		notRun(err)
	}
	Enter(prepare...)
	os.Exit(m.Run())
}

// Enter returns on a machine of the program's own; the process that called it
// stays outside and exits with the program's status. See package isolate.
func Enter(prepare ...Prepare) {
	if err := possible(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	number := 1
	if os.Getenv(numberVariable) != "" {
		number = 2
	}
	run := isolate.Enter(isolate.Options{
		Prefix: prefix,
		Prepare: func(ctx context.Context, r isolate.Run) error {
			if err := binaries.CheckSystem(); err != nil {
				return err
			}
			if err := binaries.Ensure(ctx, os.Stderr); err != nil {
				return err
			}
			if err := buildImagePrograms(ctx, filepath.Join(r.Dir, "images")); err != nil {
				return err
			}
			for _, p := range prepare {
				if err := p(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		Setup:  func(r isolate.Run) error { return machine{r, number}.setUp() },
		Failed: saveLogs,
	})
	here = machine{run, number}
	// containerd starts shims by name, and people want kubectl and crictl.
	os.Setenv("PATH", strings.Join(append(binaries.Dirs(), os.Getenv("PATH")), ":"))
	if number > 1 {
		os.Exit(neighbourMain())
	}
}

func possible() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("namespaces, mounts and cgroups need root")
	}
	return nil
}
