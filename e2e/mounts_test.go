//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// mountedOver: a disk that the node mounts late is the one that the checkpointer writes to.
func mountedOver(ctx context.Context, s *testSite) {
	s.step("a disk is mounted over the stored manifests", syscall.Mount("disk", site.InactiveDir, "tmpfs", 0, "mode=0700"))
	s.step("web's Secret changes", s.setPassword(ctx, "mounted over"))
	s.step("the stored manifests are on the new disk", site.Soon(ctx, "stored manifests", func(context.Context) error {
		return errors.Join(site.Exists(site.Stored(s.Web)), site.Exists(site.Stored(s.Self)))
	}, s.Kubelet))
	s.step("it is unmounted", syscall.Unmount(site.InactiveDir, 0))
	s.step("the stored manifests from before are there", errors.Join(site.Exists(site.Stored(s.Web)), site.Exists(site.Stored(s.Self))))
}

// unmountedEverywhere: what the node unmounted, as the volumes and root filesystems of pods that were deleted, is not kept
// mounted, and its space in use, by a copy of the checkpointer.
func unmountedEverywhere(_ context.Context, s *testSite) {
	pids := agents()
	if len(pids) != 2 {
		s.t.Fatalf("%d copies run", len(pids))
	}
	for _, pid := range pids {
		before, node, after := s.mountPoints(fmt.Sprint(pid)), s.mountPoints("self"), s.mountPoints(fmt.Sprint(pid))
		if !before[lab.KubeletDir] {
			s.t.Errorf("%s is not mounted in %d", lab.KubeletDir, pid)
		}
		for point := range before {
			if !node[point] && after[point] && ofTheNode(point) {
				s.t.Errorf("%s is mounted in %d, and not on the node", point, pid)
			}
		}
	}
}

// ofTheNode says whether a mount that the checkpointer sees comes from the node. Those below a root filesystem are of its
// own container: runc mounts them before it mounts /run/containerd.
func ofTheNode(point string) bool {
	for _, dir := range []string{"/etc/kubernetes/", lab.KubeletDir + "/", "/run/containerd/", "/run/lock/"} {
		if strings.HasPrefix(point, dir) {
			return !strings.Contains(point, "/rootfs/")
		}
	}
	return false
}

// mountPoints are those that a process sees.
func (s *testSite) mountPoints(pid string) map[string]bool {
	s.t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		s.t.Fatal(err)
	}
	points := make(map[string]bool)
	for line := range bytes.Lines(data) {
		points[strings.Fields(string(line))[4]] = true // proc_pid_mountinfo(5)
	}
	return points
}
