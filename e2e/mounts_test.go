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

// unmountedEverywhere: what the node unmounted, as the volumes and root filesystems of pods that were deleted, is not kept mounted, and its space in use, by a copy of the checkpointer.
func unmountedEverywhere(ctx context.Context, s *testSite) {
	s.step("no copy keeps what the node unmounted", site.Soon(ctx, "the unmounts", func(context.Context) error {
		host, err := mountPoints("self")
		if err != nil {
			return err
		}
		pids := agents()
		if len(pids) != 2 {
			return fmt.Errorf("%d copies run", len(pids))
		}
		for _, pid := range pids {
			seen, err := mountPoints(fmt.Sprint(pid))
			if err != nil {
				return err
			}
			if !seen[lab.KubeletDir] {
				return fmt.Errorf("%s is not mounted in %d", lab.KubeletDir, pid)
			}
			for point := range seen {
				if strings.Contains(point, "/rootfs/") {
					continue // of its own container, made by runc in its mount namespace before it mounts /run/containerd there
				}
				for _, dir := range []string{"/etc/kubernetes/", lab.KubeletDir + "/", "/run/containerd/", "/run/lock/"} {
					if strings.HasPrefix(point, dir) && !host[point] {
						return fmt.Errorf("%s is mounted in %d, and not on the node", point, pid)
					}
				}
			}
		}
		return nil
	}, s.Kubelet))
}

// mountPoints are those that a process sees.
func mountPoints(pid string) (map[string]bool, error) {
	data, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	points := make(map[string]bool)
	for line := range bytes.Lines(data) {
		if fields := strings.Fields(string(line)); len(fields) > 4 { // proc_pid_mountinfo(5)
			points[fields[4]] = true
		}
	}
	return points, err
}
