//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PowerCut ends the node as a power cut does: no process of it gets to do
// anything any more, and what is in memory only is lost (/run, tmpfs volumes,
// cgroups). Its disk stays, and so does the cluster.
func (n *Node) PowerCut(ctx context.Context) error {
	for _, c := range []*Component{n.Kubelet, n.Containerd} {
		if !c.Running() {
			continue
		}
		if err := c.Kill(ctx); err != nil {
			return err
		}
	}
	if err := killOrphans(ctx); err != nil {
		return err
	}
	return n.machine.loseMemory()
}

// PowerOn starts containerd, then the kubelet.
func (n *Node) PowerOn(ctx context.Context) error {
	if err := n.Containerd.Start(ctx); err != nil {
		return err
	}
	return n.Kubelet.Start(ctx)
}

// Close cuts the power, wipes the disk and ends a black hole, so that another
// node can be started.
func (n *Node) Close(ctx context.Context) error {
	if err := n.EndBlackHole(); err != nil {
		return err
	}
	if err := n.PowerCut(ctx); err != nil {
		return err
	}
	for _, path := range []string{"/etc/kubernetes", cniConfigs, KubeletDir, "/var/lib/containerd", "/var/lib/cni"} {
		if err := removeContent(path); err != nil {
			return err
		}
	}
	// The next node's pods don't write there, and a failed test's are to be found among the saved logs.
	err := os.Rename(Logs+"/pods", Logs+"/pods-until-"+time.Now().Format("150405.000"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func removeContent(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(dir + "/" + e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// killOrphans kills the shims and what runs in the containers. With containerd
// and the kubelet dead, these are the processes of the PID namespace that don't
// descend from this one, except for process 1.
func killOrphans(ctx context.Context) error {
	return Wait(ctx, "the node's processes to end", func(context.Context) error {
		parents, err := livingProcesses()
		if err != nil {
			return err
		}
		var left []int
		for pid := range parents {
			if pid != 1 && !descends(pid, os.Getpid(), parents) {
				left = append(left, pid)
			}
		}
		for _, pid := range left {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				return fmt.Errorf("kill %d: %w", pid, err)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("killed %d a moment ago", left)
		}
		return nil
	})
}

// livingProcesses maps each process that isn't a zombie to its parent.
func livingProcesses() (map[int]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it ended meanwhile
		}
		// "pid (name) state ppid ...", and the name may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if state := fields[0]; state == "Z" || state == "X" {
			continue
		}
		if parents[pid], err = strconv.Atoi(fields[1]); err != nil {
			return nil, err
		}
	}
	return parents, nil
}

func descends(pid, ancestor int, parents map[int]int) bool {
	for ; pid != 0; pid = parents[pid] {
		if pid == ancestor {
			return true
		}
	}
	return false
}
