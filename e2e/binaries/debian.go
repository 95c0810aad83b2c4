package binaries

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CNIDir is where Debian's containernetworking-plugins puts the CNI plugins.
const CNIDir = "/usr/lib/cni"

// debian maps what the node needs from Debian to the package that has it.
var debian = []struct{ program, pkg string }{
	{"runc", "runc"},
	{filepath.Join(CNIDir, "ptp"), "containernetworking-plugins"},
	{filepath.Join(CNIDir, "host-local"), "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"nsenter", "util-linux"},
}

// CheckSystem reports every missing system program in one error that names the
// command which installs them.
func CheckSystem() error {
	var missing, packages []string
	for _, d := range debian {
		if found(d.program) {
			continue
		}
		missing = append(missing, d.program)
		if len(packages) == 0 || packages[len(packages)-1] != d.pkg {
			packages = append(packages, d.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("missing %s; install with: apt-get install --no-install-recommends %s",
		strings.Join(missing, ", "), strings.Join(packages, " "))
}

func found(program string) bool {
	if filepath.IsAbs(program) {
		_, err := os.Stat(program)
		return err == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}
