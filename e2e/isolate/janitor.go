//go:build linux

package isolate

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// janitor is the process that removes what the run leaves on the machine. It
// waits for the end of a pipe that only the outer process holds, so it works
// after a SIGKILL too.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

func startJanitor(run Run, locks []*os.File) (*janitor, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = environment("janitor", run)
	cmd.Stdin, cmd.Stderr = r, os.Stderr
	cmd.ExtraFiles = locks
	// A session of its own keeps the terminal's and go test's signals away.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return &janitor{cmd, w}, nil
}

// finish lets the janitor work and waits for it.
func (j *janitor) finish() error {
	return errors.Join(j.pipe.Close(), j.cmd.Wait())
}

func janitorMain(run Run) int {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return complain("wait for the run", err)
	}
	if err := remove(run); err != nil {
		return complain("remove the run's leftovers", err)
	}
	return 0
}
