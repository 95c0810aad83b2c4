// Package namespacetest runs tests in Linux namespaces of their own, where they may mount, or use up what the kernel
// limits, and nobody else suffers.
package namespacetest

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Inside runs the calling test once more, in a process with the namespaces that flags name (syscall.CLONE_NEW...), and
// says whether this is that process. Mounts made there stay there.
func Inside(t *testing.T, flags uintptr) bool {
	t.Helper()
	if isInside(t) {
		if flags&syscall.CLONE_NEWNS != 0 {
			if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
				t.Fatal(err)
			}
		}
		return true
	}
	attributes := &syscall.SysProcAttr{Cloneflags: flags}
	if flags&syscall.CLONE_NEWUSER != 0 || os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	runAgain(t, attributes)
	return false
}

// InsideAs is Inside without namespaces, as another user, who may not do what root may. It needs root.
func InsideAs(t *testing.T, uid uint32) bool {
	t.Helper()
	if isInside(t) {
		return true
	}
	runAgain(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}})
	return false
}

const inside = "NAMESPACETEST_INSIDE"

func isInside(t *testing.T) bool { return os.Getenv(inside) == t.Name() }

func runAgain(t *testing.T, attributes *syscall.SysProcAttr) {
	t.Helper()
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+part+"$")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run="+strings.Join(pattern, "/"), "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	cmd.SysProcAttr, cmd.Dir = attributes, "/" // another user may not be allowed to reach the package
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in namespaces of its own: %v\n%s", err, out)
	}
}

// Limit sets a limit of this user namespace, as user/max_inotify_watches, to n, and returns what gives it back.
func Limit(t *testing.T, name, n string) (restore func()) {
	t.Helper()
	path := "/proc/sys/" + name
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(n), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.WriteFile(path, before, 0); err != nil {
			t.Fatal(err)
		}
	}
}
