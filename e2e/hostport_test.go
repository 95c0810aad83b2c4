//go:build linux

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

//go:embed testdata/hostport.yaml
var hostPortWorkload []byte

// TestKeptHostPort: the kubelet rejects a pod for good whose host port a static pod declares. The very pod that ran before
// the power cut runs again all the same.
func TestKeptHostPort(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("the workload is applied", s.Apply(ctx, hostPortWorkload))
	s.step("it is ready", s.WaitDaemonSet(ctx, site.Namespace, "door"))
	before := s.only(ctx, "app=door")
	s.step("it has a stored checkpoint", site.Soon(ctx, "the checkpoint", func(context.Context) error {
		return site.Exists(site.Stored(before.Name))
	}))

	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	s.ask(ctx, site.Static(before.Name))
	s.step("API server is back", s.APIServer.Start(ctx))
	s.step("its checkpoint is withdrawn", lab.Wait(ctx, "the hand-over", func(context.Context) error {
		return site.Absent(site.Active(before.Name))
	}, s.Kubelet))
	s.step("nothing of the checkpoint is left", lab.Wait(ctx, "the end of the checkpoint", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, site.Namespace, "app=door")
		if err == nil && len(pods) != 1 {
			err = fmt.Errorf("there are %d pods", len(pods))
		}
		return err
	}, s.Kubelet))
	s.step("the pod is ready", s.WaitDaemonSet(ctx, site.Namespace, "door"))
	after := s.only(ctx, "app=door")
	if after.UID != before.UID || after.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is another one: %s (%s), before it was %s", after.UID, after.Status.Phase, before.UID)
	}
	s.ask(ctx, before.Name)
}

// only is the one pod that a selector finds.
func (s *testSite) only(ctx context.Context, selector string) corev1.Pod {
	s.t.Helper()
	pods, err := s.PodsOf(ctx, site.Namespace, selector)
	if err != nil || len(pods) != 1 {
		s.t.Fatalf("%d pods are %s (%v)", len(pods), selector, err)
	}
	return pods[0]
}
