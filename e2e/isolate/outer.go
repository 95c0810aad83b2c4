//go:build linux

package isolate

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func outerMain(o Options) int {
	// Pdeathsig means the death of the thread that forked, not of the process.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)

	run, locks, err := create(o.Prefix)
	if err != nil {
		return complain("make room for the run", err)
	}
	janitor, err := startJanitor(run, locks)
	if err != nil {
		remove(run)
		return complain("start the janitor", err)
	}
	status := prepareAndRun(o, run, signals)
	if status != 0 && o.Failed != nil {
		o.Failed(run)
	}
	if err := janitor.finish(); err != nil {
		return complain("clean up", err)
	}
	return status
}

func prepareAndRun(o Options, run Run, signals chan os.Signal) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	prepared := make(chan error, 1)
	go func() { prepared <- o.Prepare(ctx, run) }()
	select {
	case err := <-prepared:
		if err != nil {
			return complain("prepare", err)
		}
	case <-signals:
		cancel()
		return complain("prepare", <-prepared)
	}
	return runInside(run, signals)
}

// runInside starts init in new namespaces and waits for it. Signals are for the
// program to handle.
func runInside(run Run, signals chan os.Signal) int {
	cmd := run.Another(context.Background())
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return complain("enter the namespaces", err)
	}
	go func() {
		for s := range signals {
			cmd.Process.Signal(s)
		}
	}()
	cmd.Wait()
	return exitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))
}

// Another is the command that runs this program in new namespaces, with the
// same arguments. Inside of a run these are a machine inside of the machine:
// the run's end is its end too.
func (r Run) Another(ctx context.Context, variables ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(environment("init", r), variables...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	return cmd
}

// exitStatus follows the shell: 128 and the signal that ended the process.
func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
