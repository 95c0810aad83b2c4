//go:build linux

package lab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/isolate"
)

// NodeName is the machine's host name, and therefore the node's.
const NodeName = "node-1"

// NeighbourName is that of the second machine; see StartNeighbour.
const NeighbourName = "node-2"

// Logs is the machine's /var/log: <component>.log, and pods/ from the kubelet.
const Logs = "/var/log"

// machine gives the node the usual paths without touching those of the host.
type machine struct {
	run    isolate.Run
	number int // 1, or 2 for the neighbour
}

// name is NodeName or NeighbourName.
func (m machine) name() string { return fmt.Sprintf("node-%d", m.number) }

// own is where the machine keeps what it has, on the real machine's disk.
func (m machine) own(path ...string) string {
	return filepath.Join(append([]string{m.run.Dir, m.name()}, path...)...)
}

func (m machine) setUp() error {
	if err := syscall.Sethostname([]byte(m.name())); err != nil {
		return err
	}
	steps := []func() error{m.disks, mountRun, m.sysctls, shareMounts, m.clusterNetwork, m.network}
	if m.number > 1 {
		steps = []func() error{uncover, m.disks, mountRun, m.sysctls, shareMounts, m.network}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// uncover takes the first machine's disks and memory away from the second one,
// which was started inside of it.
func uncover() error {
	for _, path := range []string{"/etc", "/var/lib", Logs, "/run"} {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("uncover %s: %w", path, err)
		}
	}
	return nil
}

// disks puts overlays over what the node writes to. Where it needs a real
// filesystem, because it puts overlays there itself, it gets a directory.
func (m machine) disks() error {
	for _, path := range []string{"/etc", "/var/lib"} {
		layers := m.own("overlay", path)
		upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
		if err := makeDirs(upper, work); err != nil {
			return err
		}
		options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", path, upper, work)
		if err := syscall.Mount("overlay", path, "overlay", 0, options); err != nil {
			return fmt.Errorf("overlay on %s with %s: %w", path, layers, err)
		}
	}
	for _, path := range []string{"/var/lib/containerd", "/var/lib/kubelet", Logs} {
		real := m.own("disk", path)
		if err := makeDirs(real, path); err != nil {
			return err
		}
		if err := syscall.Mount(real, path, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", path, err)
		}
	}
	return nil
}

// mountRun is what a boot does.
func mountRun() error {
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	return makeDirs("/run/lock")
}

// sysctls gives the kubelet files to write to instead of kernel settings that
// aren't namespaced (setupKernelTunables in pkg/kubelet/cm).
func (m machine) sysctls() error {
	for name, value := range map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	} {
		fake := m.own("sysctl", name)
		if err := makeDirs(filepath.Dir(fake)); err != nil {
			return err
		}
		if err := os.WriteFile(fake, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(fake, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover the sysctl %s: %w", name, err)
		}
	}
	return nil
}

// shareMounts lets containers ask for mount propagation.
func shareMounts() error {
	return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, "")
}

// loseMemory is what a power cut does: /run, tmpfs volumes and every other
// mount of the node are gone, and so are its cgroups.
func (m machine) loseMemory() error {
	for _, path := range []string{"/var/lib/kubelet/", "/var/lib/containerd/", "/run/"} {
		if err := unmountBelow(path); err != nil {
			return err
		}
	}
	if err := syscall.Unmount("/run", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount /run: %w", err)
	}
	if err := m.run.EmptyCgroups(m.number); err != nil {
		return fmt.Errorf("remove the pods' cgroups: %w", err)
	}
	return mountRun()
}

// unmountBelow detaches the mounts whose path starts with prefix.
func unmountBelow(prefix string) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// The fifth field is the mount point, with octal escapes for spaces.
		if point := strings.Fields(lines.Text())[4]; strings.HasPrefix(point, prefix) {
			points = append(points, strings.ReplaceAll(point, `\040`, " "))
		}
	}
	for _, point := range slices.Backward(points) {
		err := syscall.Unmount(point, syscall.MNT_DETACH)
		// EINVAL: it went with one that was mounted over or below it.
		if err != nil && err != syscall.EINVAL && err != syscall.ENOENT {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

func makeDirs(paths ...string) error {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// command runs a short command of the machine; its error carries the output.
func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
