//go:build linux

package isolate

import (
	"os"
	"os/signal"
	"syscall"
)

// initMain is process 1. It doesn't use os/exec after the set-up, because that
// would compete with reap for exit statuses.
func initMain(o Options, run Run) int {
	// Private first, or the mounts would show up outside.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return complain("make the mounts private", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return complain("mount /proc", err)
	}
	if err := o.Setup(run); err != nil {
		return complain("set up the machine", err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	program, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Env:   environment("main", run),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return complain("start the program", err)
	}
	go func() {
		for s := range signals {
			program.Signal(s)
		}
	}()
	return reap(program.Pid)
}

// reap collects every orphan, such as the shims that containerd leaves behind,
// until the program ends.
func reap(program int) int {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return complain("wait for the program", err)
		case pid == program:
			return exitStatus(status)
		}
	}
}
