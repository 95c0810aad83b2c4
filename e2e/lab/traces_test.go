//go:build linux

package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// traces is what a run has on the machine: processes that have its name in their
// environment, cgroup or mounts; cgroups; its directory.
func traces(t *testing.T, dir string) []string {
	t.Helper()
	name := filepath.Base(dir)
	var found []string
	for pid := range processes(t) {
		for _, file := range []string{"environ", "cgroup", "mountinfo"} {
			path := fmt.Sprintf("/proc/%d/%s", pid, file)
			// A process that ends meanwhile is none.
			if data, _ := os.ReadFile(path); strings.Contains(string(data), name) {
				found = append(found, path)
			}
		}
	}
	cgroups, err := filepath.Glob("/sys/fs/cgroup/*/" + name + "*")
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, cgroups...)
	unified, err := filepath.Glob("/sys/fs/cgroup/" + name + "*")
	if err != nil {
		t.Fatal(err)
	}
	found = append(found, unified...)
	if exists(dir) == nil {
		found = append(found, dir)
	}
	return found
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// initProcess is the child of the outer process that isn't the janitor, which
// has a session of its own.
func initProcess(outer int, parents map[int]int) int {
	for pid, parent := range parents {
		session, _, _ := syscall.Syscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
		if parent == outer && int(session) != pid {
			return pid
		}
	}
	return 0
}

// program is the child of init that runs this binary.
func program(outer int, parents map[int]int) int {
	first := initProcess(outer, parents)
	self, _ := os.Executable()
	for pid, parent := range parents {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if parent == first && exe == self {
			return pid
		}
	}
	return 0
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("found no process to kill")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func processes(t *testing.T) map[int]int {
	t.Helper()
	parents, err := livingProcesses()
	if err != nil {
		t.Fatal(err)
	}
	return parents
}

// settings are what the kubelet and the CNI plugins change on a real node.
func settings(t *testing.T) []string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, i := range all {
		found = append(found, i.Name)
	}
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		value, err := os.ReadFile("/proc/sys/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, name+"="+string(value))
	}
	return found
}
