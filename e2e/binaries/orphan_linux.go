package binaries

import (
	"os/exec"
	"syscall"
)

// endWithUs lets the kernel interrupt the command when this process is killed:
// a compiler must not go on, or write below the hands of the next run. The go
// command ends its own children at SIGINT.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
}
