//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

const api = "API server"

// What a DaemonSet's witness is started with, for good and for bad.
var (
	goodArgs = inContainer("witness", `"args":["--listen=:7001"]`)
	badArgs  = inContainer("witness", `"args":["--no-such-flag"]`)
)

func (c *chaos) allFaults() []*fault {
	now := func(do func() error) func(context.Context) error { return func(context.Context) error { return do() } }
	restart := func(component *lab.Component) func(context.Context) error {
		return func(ctx context.Context) error { return errors.Join(component.Kill(ctx), component.Start(ctx)) }
	}
	return []*fault{
		{name: "API server is stopped", target: api, begin: c.APIServer.Stop, end: c.APIServer.Start},
		{name: "API server hangs", target: api, begin: now(c.APIServer.Pause), end: now(c.APIServer.Resume)},
		{name: "API server is killed and restarted", target: api, begin: restart(c.APIServer)},
		{name: "etcd hangs", target: api, begin: now(c.Etcd.Pause), end: now(c.Etcd.Resume)},
		{name: "link to the API server is cut", target: api, begin: now(c.BlackHole), end: now(c.EndBlackHole)},
		{name: "kubelet is killed and restarted", target: "kubelet", begin: restart(c.Kubelet), needs: "containerd"},
		{name: "kubelet is away", target: "kubelet", begin: c.Kubelet.Kill, end: c.Kubelet.Start, needs: "containerd"},
		{name: "kubelet hangs", target: "kubelet", begin: now(c.Kubelet.Pause), end: now(c.Kubelet.Resume)},
		{name: "containerd is killed and restarted", target: "containerd", begin: restart(c.Containerd)},
		{name: "containerd hangs", target: "containerd", begin: now(c.Containerd.Pause), end: now(c.Containerd.Resume)},
		{name: "a copy of the agent is killed", target: "agent", begin: now(func() error { return c.signalAgents(1, syscall.SIGKILL) })},
		{name: "both copies of the agent are killed", target: "agent", begin: now(func() error { return c.signalAgents(2, syscall.SIGKILL) })},
		{name: "a copy of the agent is frozen", target: "agent", begin: now(func() error { return c.signalAgents(1, syscall.SIGSTOP) }), end: now(thaw)},
		{name: "both copies of the agent are frozen", target: "agent", begin: now(func() error { return c.signalAgents(2, syscall.SIGSTOP) }), end: now(thaw)},
		{name: "a manifest of ours is deleted", target: "agent", begin: c.spoil(os.Remove), alone: true},
		{name: "a manifest of ours is truncated", target: "agent", begin: c.spoil(func(path string) error { return os.Truncate(path, 0) }), alone: true},
		{name: "a manifest of ours is overwritten", target: "agent", begin: c.spoil(func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) }), alone: true},
		{name: "a manifest of ours becomes a directory", target: "agent", begin: c.spoil(func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }), alone: true},
		{name: "web's pod is deleted", target: "pods", begin: c.deletePods("web"), alone: true},
		{name: "gateway's pod is deleted", target: "pods", begin: c.deletePods("gateway"), alone: true},
		{name: "web is rolled out", target: "pods", begin: c.rollOut("web", inContainer("witness", fmt.Sprintf(`"env":[{"name":"REVISION","value":"%d"}]`, c.random.Int()))), needs: api},
		{name: "gateway gets a bad flag", target: "pods", begin: c.rollOut("gateway", badArgs), end: c.rollOut("gateway", goodArgs), needs: api},
		{name: "the agent is rolled out", target: "agent", begin: c.rollOut("pod-checkpointer", inContainer("checkpointer", fmt.Sprintf(`"env":[{"name":"REVISION","value":"%d"}]`, c.random.Int()))), alone: true},
		{name: "the DaemonSet's copy of the agent is deleted", target: "agent", begin: c.deletePods("pod-checkpointer"), alone: true},
	}
}

// agents are the process IDs of the copies of the checkpointer.
func agents() (pids []int) {
	programs, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, exe := range programs {
		if program, err := os.Readlink(exe); err == nil && filepath.Base(program) == "checkpointer" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// signalAgents sends a signal to at most n copies, in random order. One that ended meanwhile has had worse.
func (c *chaos) signalAgents(n int, signal syscall.Signal) error {
	pids := agents()
	c.random.Shuffle(len(pids), func(i, j int) { pids[i], pids[j] = pids[j], pids[i] })
	for _, pid := range pids[:min(n, len(pids))] {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// thaw lets every copy go on that still is there.
func thaw() error {
	for _, pid := range agents() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}

// spoil does something to a manifest of ours, and waits until it is as it was. It is done while the agent runs only: what is
// deleted while nobody remembers it is gone.
func (c *chaos) spoil(do func(path string) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := bothRun(ctx); err != nil {
			return nil // not now
		}
		paths, err := filepath.Glob(site.InactiveDir + "/" + site.Namespace + "_*.json")
		active, activeErr := filepath.Glob(lab.Manifests + "/" + site.Namespace + "_*.json")
		paths = append(paths, active...)
		if err := errors.Join(err, activeErr); err != nil || len(paths) == 0 {
			return err
		}
		path := paths[c.random.IntN(len(paths))]
		before, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := do(path); err != nil {
			return err
		}
		c.t.Logf("          %s", path)
		return site.Soon(ctx, "restoration", func(context.Context) error {
			after, err := os.ReadFile(path)
			if err == nil && !bytes.Equal(before, after) {
				err = fmt.Errorf("%s has other content", path)
			}
			return err
		})
	}
}

// bothRun waits for a moment until both copies of the agent run.
func bothRun(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return lab.Wait(ctx, "both copies of the agent", func(context.Context) error {
		if pids := agents(); len(pids) != 2 {
			return fmt.Errorf("%d copies run", len(pids))
		}
		return nil
	})
}

// rollOut changes the template of a DaemonSet.
func (c *chaos) rollOut(daemonSet, patch string) func(context.Context) error {
	return func(ctx context.Context) error { return c.change(ctx, daemonSet, patch) }
}

// deletePods deletes the pods of a DaemonSet, as an operator or a roll-out does; the controller makes new ones.
func (c *chaos) deletePods(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		selector := "app=" + name
		if name == "pod-checkpointer" {
			selector = ofCheckpointer
		}
		names, err := c.parents(ctx, selector)
		for _, pod := range names {
			_, deleteErr := c.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, pod, "--wait=false")
			err = errors.Join(err, deleteErr)
		}
		return err
	}
}
