//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestOperate is what a person does with a node: ask it, mistreat it, cure it, and take the checkpointer away.
func TestOperate(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.inOrder(ctx, []part{
		{"doctor finds what is wrong and no more", doctorFinds},
		{"status without API server, from the copy that stands by", statusWithoutAPI},
		{"a leader that hangs is replaced", leaderHangs},
		{"Events tell the story", eventsTell},
		{"cleanup without API server, while the agent runs", cleansUp},
	})
}

// inCopy runs a command of the checkpointer in one of its containers, and returns what it prints, its complaints if it
// fails, and its exit code.
func (s *testSite) inCopy(ctx context.Context, pod string, args ...string) (stdout string, code int, err error) {
	container, err := s.RunningContainer(ctx, site.Namespace, pod, "checkpointer")
	if err != nil {
		return "", 0, err
	}
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, binaries.Path("crictl"), append([]string{
		"--runtime-endpoint=unix://" + lab.ContainerdSocket, "exec", container.Id, "/checkpointer",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code, err = failed.ExitCode(), nil
	}
	if code != 0 || err != nil {
		out.Write(complaints.Bytes())
	}
	return out.String(), code, err
}

// onHost runs a command of the checkpointer as root on the node.
func onHost(ctx context.Context, args ...string) (output string, code int, err error) {
	cmd := exec.CommandContext(ctx, "../bin/checkpointer", append(args, "--lock-file=/run/lock/pod-checkpointer.lock")...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		code, err = failed.ExitCode(), nil
	}
	return string(out), code, err
}

// diagnosis is what doctor --json prints.
type diagnosis struct {
	Survives bool
	Findings []struct{ Name, Severity, What string }
}

// has waits until a finding is there, or is not.
func (s *testSite) has(ctx context.Context, name string, want bool) error {
	return site.Soon(ctx, fmt.Sprintf("doctor to find %s: %v", name, want), func(ctx context.Context) error {
		d, err := diagnose(ctx)
		if err != nil {
			return err
		}
		for _, f := range d.Findings {
			if f.Name == name {
				if want != (d.Survives || f.Severity == "error") {
					return fmt.Errorf("survives: %v, and found %+v", d.Survives, f)
				}
				if want {
					return nil
				}
				return fmt.Errorf("still found: %+v", f)
			}
		}
		if want {
			return fmt.Errorf("found only %+v", d.Findings)
		}
		return nil
	})
}

func diagnose(ctx context.Context) (d diagnosis, err error) {
	out, code, err := onHost(ctx, "doctor", "--json")
	if err != nil {
		return d, err
	}
	end := strings.LastIndex(out, "}")
	if err := json.Unmarshal([]byte(out[:end+1]), &d); err != nil {
		return d, fmt.Errorf("%w: %s", err, out)
	}
	if d.Survives != (code == 0) {
		return d, fmt.Errorf("exit code %d, and survives: %v", code, d.Survives)
	}
	return d, nil
}

// doctorFinds provokes and cures what can be provoked on a node that goes on working.
func doctorFinds(ctx context.Context, s *testSite) {
	s.step("doctor is content, in each copy and on the host", site.Soon(ctx, "a healthy node", func(ctx context.Context) error {
		for _, pod := range []string{s.Self, site.Static(s.Self)} {
			if out, code, err := s.inCopy(ctx, pod, "doctor"); err != nil || code != 0 {
				return fmt.Errorf("in %s: exit code %d, %w\n%s", pod, code, err, out)
			}
		}
		out, code, err := onHost(ctx, "doctor")
		if err == nil && code != 0 {
			err = fmt.Errorf("on the host: exit code %d\n%s", code, out)
		}
		return err
	}))
	twin := filepath.Join(lab.Manifests, "twin.json")
	stored, err := os.ReadFile(site.Stored(s.Web))
	s.step("a stored manifest is read", err)
	for _, ill := range []struct {
		name          string
		provoke, cure func() error
	}{
		{"manifest-twice", func() error {
			return os.WriteFile(twin, bytes.Replace(stored, []byte(`"checkpointer.alpha.coreos.com/lineage"`), []byte(`"x/lineage"`), 1), 0o600)
		}, func() error { return os.Remove(twin) }},
		{"image-missing", func() error { return s.tag(ctx, lab.WitnessImage, false) }, func() error { return s.tag(ctx, lab.WitnessImage, true) }},
		{"refused", func() error { return s.Apply(ctx, []byte(refusedPod)) }, func() error {
			_, err := s.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, "refused", "--force", "--grace-period=0")
			return err
		}},
		{"no-network-agent", func() error { return cniType("ptp", "cilium-cni") }, func() error { return cniType("cilium-cni", "ptp") }},
		{"runtime-silent", s.Containerd.Pause, s.Containerd.Resume},
	} {
		s.step(ill.name+" is provoked", ill.provoke())
		s.step(ill.name+" is found", s.has(ctx, ill.name, true))
		s.step(ill.name+" is cured", ill.cure())
		s.step(ill.name+" is found no more", s.has(ctx, ill.name, false))
	}
	d, err := diagnose(ctx)
	s.step("doctor is content again", err)
	if !d.Survives || !slices.ContainsFunc(d.Findings, func(f struct{ Name, Severity, What string }) bool { return f.Name == "host-port-gap" }) {
		s.t.Errorf("the node does not survive, or gateway's gap is not told: %+v", d)
	}
}

const refusedPod = `
apiVersion: v1
kind: Pod
metadata:
  name: refused
  namespace: kube-system
  annotations: {checkpointer.alpha.coreos.com/checkpoint: "true"}
spec:
  nodeName: ` + lab.NodeName + `
  terminationGracePeriodSeconds: 0
  containers: [{name: witness, image: "pod-checkpointer/witness:dev", imagePullPolicy: Never, args: ["--listen=:8080"], volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]
`

// tag takes an image's name from it, or gives it back. Its content stays under another name.
func (s *testSite) tag(ctx context.Context, image string, back bool) error {
	name, kept := "docker.io/"+image, "docker.io/pod-checkpointer/kept:dev"
	ctr := func(args ...string) error {
		return exec.CommandContext(ctx, binaries.Path("ctr"), append([]string{"--namespace=k8s.io", "images"}, args...)...).Run()
	}
	if back {
		return errors.Join(ctr("tag", kept, name), ctr("rm", kept))
	}
	return errors.Join(ctr("tag", name, kept), ctr("rm", name))
}

// cniType changes the network's plugin; containerd follows its configuration.
func cniType(from, to string) error {
	path := "/etc/cni/net.d/10-ptp.conflist"
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(`"`+from+`"`), []byte(`"`+to+`"`), 1), 0o644)
}

// statusWithoutAPI: the copy that stands by tells of every lineage, and that the API server is lost.
func statusWithoutAPI(ctx context.Context, s *testSite) {
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("status tells so, in each copy and on the host", site.Soon(ctx, "status", func(ctx context.Context) error {
		for _, pod := range []string{s.Self, site.Static(s.Self)} {
			if err := tells(s.inCopy(ctx, pod, "status", "--json")); err != nil {
				return fmt.Errorf("in %s: %w", pod, err)
			}
		}
		return tells(onHost(ctx, "status", "--json"))
	}))
	out, code, err := s.inCopy(ctx, site.Static(s.Self), "status")
	if err != nil || code != 0 || !strings.Contains(out, "API server lost for") {
		s.t.Errorf("%v, exit code %d:\n%s", err, code, out)
	}
	s.t.Logf("status:\n%s", out)
	s.step("API server is back", s.APIServer.Start(ctx))
}

func tells(out string, code int, err error) error {
	if err != nil || code != 0 {
		return fmt.Errorf("exit code %d, %w: %s", code, err, out)
	}
	var r struct {
		Lock     struct{ Held bool }
		API      struct{ State string }
		Lineages []struct{ Pod, Phase string }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		return err
	}
	if !r.Lock.Held || r.API.State != "lost" || len(r.Lineages) != 3 {
		return fmt.Errorf("told: %+v", r)
	}
	return nil
}

// leaderHangs: the process that leads is stopped. The kubelet restarts it, and the other copy leads.
func leaderHangs(ctx context.Context, s *testSite) {
	for _, pod := range []string{s.Self, site.Static(s.Self)} {
		out, code, err := s.inCopy(ctx, pod, "probe")
		if err != nil || code != 0 {
			s.t.Fatalf("probe of %s: %v, exit code %d: %s", pod, err, code, out)
		}
		s.step(fmt.Sprintf("%s answers %q", pod, strings.TrimSpace(out)), nil)
	}
	leader, id := s.leader(ctx)
	pid, err := s.processOf(ctx, id)
	s.step(leader+"'s process is found", err)
	hung := time.Now()
	s.step(leader+" is stopped", syscall.Kill(pid, syscall.SIGSTOP))
	other := site.Static(s.Self)
	if leader == other {
		other = s.Self
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	s.step("its probe fails", lab.Wait(ctx, "the probe", func(ctx context.Context) error {
		_, code, err := s.inCopy(ctx, leader, "probe")
		if err == nil && code != 1 {
			err = fmt.Errorf("exit code %d", code)
		}
		return err
	}))
	s.step("the other copy leads", lab.Wait(ctx, "the other copy", func(ctx context.Context) error {
		out, _, err := s.inCopy(ctx, other, "probe")
		if err == nil && strings.TrimSpace(out) != "leading" {
			err = errors.New(out)
		}
		return err
	}, s.Kubelet))
	s.step(fmt.Sprintf("after %.1f s", time.Since(hung).Seconds()), nil)
	s.step("the one that hung is restarted, and stands by", lab.Wait(ctx, "the restart", func(ctx context.Context) error {
		out, _, err := s.inCopy(ctx, leader, "probe")
		if err == nil && strings.TrimSpace(out) != "standing by" {
			err = errors.New(out)
		}
		return err
	}, s.Kubelet))
	s.step(fmt.Sprintf("after %.1f s", time.Since(hung).Seconds()), nil)
}

// leader is the pod of the copy that leads, and its container.
func (s *testSite) leader(ctx context.Context) (pod, container string) {
	s.t.Helper()
	for _, pod := range []string{s.Self, site.Static(s.Self)} {
		if out, _, err := s.inCopy(ctx, pod, "probe"); err == nil && strings.TrimSpace(out) == "leading" {
			c, err := s.RunningContainer(ctx, site.Namespace, pod, "checkpointer")
			s.step(pod+" leads", err)
			return pod, c.Id
		}
	}
	s.t.Fatal("no copy leads")
	return "", ""
}

// processOf is the first process of a container.
func (s *testSite) processOf(ctx context.Context, container string) (int, error) {
	out, err := exec.CommandContext(ctx, binaries.Path("crictl"), "--runtime-endpoint=unix://"+lab.ContainerdSocket, "inspect", container).Output()
	if err != nil {
		return 0, err
	}
	var told struct{ Info struct{ PID int } }
	if err := json.Unmarshal(out, &told); err != nil || told.Info.PID == 0 {
		return 0, fmt.Errorf("no PID in %s: %w", out, err)
	}
	return told.Info.PID, nil
}

// cleansUp: after a power cut without API server, everything of ours goes though two copies of the agent run, and what is
// not ours stays.
func cleansUp(ctx context.Context, s *testSite) {
	s.step("cleanup refuses while the API server serves", site.Soon(ctx, "a refusal", func(ctx context.Context) error {
		out, code, err := s.inCopy(ctx, s.Self, "cleanup") // without --yes
		if err == nil && (code != 1 || !strings.Contains(out, "would store everything again")) {
			err = fmt.Errorf("exit code %d: %s", code, out)
		}
		return err
	}))
	s.step("nothing is removed", site.Exists(site.Stored(s.Web)))
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	s.testimonies(ctx, site.Static(s.Web))
	foreign := filepath.Join(lab.Manifests, ".keep")
	s.step("somebody else's file is there", os.WriteFile(foreign, nil, 0o600))
	out, code, err := s.inCopy(ctx, site.Static(s.Self), "cleanup", "--yes", "--wait=5s")
	s.t.Logf("cleanup, exit code %d:\n%s", code, out)
	if code != 0 {
		err = errors.Join(err, fmt.Errorf("exit code %d", code))
	}
	s.step("cleanup is done, in the copy that leads", err)
	entries, err := os.ReadDir(lab.Manifests)
	if err == nil && (len(entries) != 1 || entries[0].Name() != ".keep") {
		err = fmt.Errorf("in the static pod directory: %v", entries)
	}
	s.step("nothing of ours is left, and what is not ours is", errors.Join(err, noFiles(site.InactiveDir), noFiles(site.AssetsDir)))
	s.step("the intent is gone", site.Absent("/run/lock/pod-checkpointer.lock.cleanup"))
}

// noFiles is an error if a directory holds anything. The agent that goes on may have made it anew.
func noFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return fmt.Errorf("in %s: %v", dir, entries)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// eventsTell: kubectl describe tells what happened to a pod, also while the API server was away.
func eventsTell(ctx context.Context, s *testSite) {
	s.step("the Events are there", site.Soon(ctx, "Events of the pods", func(ctx context.Context) error {
		events, err := s.Kubectl(ctx, "get", "events", "-n", site.Namespace, "-o", `jsonpath={range .items[*]}{.involvedObject.name} {.reason}{"\n"}{end}`)
		for _, want := range []string{s.Web + " CheckpointStored", s.Gateway + " CheckpointStored", "refused CheckpointRefused"} {
			if !strings.Contains(events, want) {
				err = errors.Join(err, fmt.Errorf("no %q", want))
			}
		}
		return err
	}))
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	s.step("gateway's checkpoint is active", site.Soon(ctx, "activation", func(context.Context) error { return site.Exists(site.Active(s.Gateway)) }))
	s.step("API server is back", s.APIServer.Start(ctx))
	// The kubelet's own back-off, of up to a minute, is not what is tested here.
	s.step("kubelet is restarted", errors.Join(s.Kubelet.Stop(ctx), s.Kubelet.Start(ctx)))
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s.step("kubectl describe tells the story", lab.Wait(ctx, "the Events", func(ctx context.Context) error {
		story, err := s.Kubectl(ctx, "describe", "pod", "-n", site.Namespace, s.Gateway)
		for _, want := range []string{"CheckpointStored", "CheckpointActivated", "CheckpointHandedOver"} {
			if !strings.Contains(story, want) {
				err = errors.Join(err, fmt.Errorf("no %s in:\n%s", want, story))
			}
		}
		return err
	}))
	s.step("gateway is ready", s.WaitDaemonSet(ctx, site.Namespace, "gateway"))
}
