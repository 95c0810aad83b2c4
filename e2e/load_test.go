//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

const manyPods = 30

// manyWorkload is one of them: a DaemonSet, as a node has one checkpoint of each.
const manyWorkload = `---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: many-%[1]d, namespace: kube-system}
spec:
  selector: {matchLabels: {app: many-%[1]d}}
  template:
    metadata:
      labels: {app: many-%[1]d}
      annotations: {checkpointer.alpha.coreos.com/checkpoint: "true"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: many, image: "pod-checkpointer/witness:dev", imagePullPolicy: IfNotPresent, args: ["--listen=:8080"]}
`

// TestManyCheckpoints tells how long 30 checkpoints take to run after a power cut, beside the same pods as plain static
// pods, which are there when the kubelet starts.
func TestManyCheckpoints(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	var all strings.Builder
	for i := range manyPods {
		fmt.Fprintf(&all, manyWorkload, i)
	}
	s.step("30 DaemonSets are applied", s.Apply(ctx, []byte(all.String())))
	var names []string
	for i := range manyPods {
		names = append(names, s.podOf(ctx, fmt.Sprintf("many-%d", i)))
	}
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	checkpoints := s.allRun(ctx, "every checkpoint", names)
	s.step("power is cut", s.PowerCut(ctx))
	s.step("the checkpoints are plain static pods", plain())
	s.step("power is on", s.PowerOn(ctx))
	plains := s.allRun(ctx, "every plain static pod", names)
	t.Logf("the last of %d checkpoints ran %.1f s after the kubelet's start, the last of as many plain static pods %.1f s after it: %.2f times as long",
		manyPods, checkpoints.Seconds(), plains.Seconds(), checkpoints.Seconds()/plains.Seconds())
}

// allRun waits until the static pods run, and says how long after the kubelet's start that was.
func (s *testSite) allRun(ctx context.Context, what string, pods []string) time.Duration {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	s.step(what+" runs", lab.Wait(ctx, what, func(ctx context.Context) error {
		containers, err := s.Containers(ctx)
		if err != nil {
			return err
		}
		running := map[string]bool{}
		for _, c := range containers {
			running[c.Labels["io.kubernetes.pod.name"]] = running[c.Labels["io.kubernetes.pod.name"]] || c.State == runtime.ContainerState_CONTAINER_RUNNING
		}
		for _, pod := range pods {
			if !running[site.Static(pod)] {
				err = fmt.Errorf("%s doesn't run", site.Static(pod))
			}
		}
		return err
	}, s.Kubelet))
	return time.Since(s.Kubelet.StartedAt())
}

// plain makes every stored checkpoint a static pod like any other. The checkpointer's own goes: nobody needs it.
func plain() error {
	entries, err := os.ReadDir(site.InactiveDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".json") || !strings.HasPrefix(entry.Name(), site.Namespace+"_") {
			continue
		}
		active := filepath.Join(lab.Manifests, entry.Name())
		if strings.Contains(entry.Name(), "pod-checkpointer") {
			if err := os.Remove(active); err != nil {
				return err
			}
			continue
		}
		if err := writePlain(filepath.Join(site.InactiveDir, entry.Name()), active); err != nil {
			return err
		}
	}
	return nil
}

func writePlain(stored, active string) error {
	data, err := os.ReadFile(stored)
	if err != nil {
		return err
	}
	var pod corev1.Pod
	if err := json.Unmarshal(data, &pod); err != nil {
		return err
	}
	pod.Annotations = nil
	if data, err = json.Marshal(pod); err != nil {
		return err
	}
	return os.WriteFile(active, data, 0o600)
}
