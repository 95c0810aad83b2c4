//go:build linux

package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

//go:embed testdata/pair.yaml
var pairWorkload []byte

const (
	firstOfPair  = lab.NodeAddress + ":7003"
	secondOfPair = lab.NodeAddress + ":7004"
)

// TestKubeletRestartWithoutAPIServer: the kubelet then knows none of the pods that run. They are left alone; one whose
// container dies is taken over by its checkpoint, because the kubelet doesn't restart it.
func TestKubeletRestartWithoutAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("pair is applied", s.Apply(ctx, pairWorkload))
	pair := s.podOf(ctx, "pair")
	before := s.testimonies(ctx, s.Web)

	s.step("API server is stopped", s.APIServer.Stop(ctx))
	restarted := time.Now()
	s.step("kubelet is restarted", errors.Join(s.Kubelet.Kill(ctx), s.Kubelet.Start(ctx)))
	s.step("the checkpointer has seen it", site.Soon(ctx, "the line about the kubelet", func(context.Context) error {
		for _, line := range s.log(restarted) {
			// One without the Pods API doesn't tell that it hasn't seen the API server: it lists what it manages.
			if line.To == "unsynced" || line.To == "synced" {
				return nil
			}
		}
		return errors.New("no line says that the kubelet answers again")
	}))

	s.step("a container of pair is killed", s.KillContainer(ctx, site.Namespace, pair, "second"))
	s.takenOver(ctx, "pair", pair, "second", secondOfPair)
	_, err := lab.WaitTestimony(ctx, firstOfPair)
	s.step("its other container answers too", err)
	s.step("web's container is killed", s.KillContainer(ctx, site.Namespace, s.Web, "witness"))
	after, err := s.WebTestimony(ctx, site.Static(s.Web))
	s.step("web's checkpoint answers", err)
	s.same(before.web, after)

	gateway, err := s.GatewayTestimony(ctx)
	s.step("gateway answers", err)
	if !gateway.Started.Equal(before.gateway.Started) {
		t.Error("gateway, whose container ran on, was restarted")
	}
	s.step("its checkpoint isn't active", site.Absent(site.Active(s.Gateway)))

	s.step("API server is back", s.APIServer.Start(ctx))
	s.step("the checkpoints are withdrawn", lab.Wait(ctx, "the hand-over", func(context.Context) error {
		return errors.Join(site.Absent(site.Active(s.Web)), site.Absent(site.Active(pair)))
	}, s.Kubelet))
	s.step("the real pods answer, and nobody else", lab.Wait(ctx, "the real pods", func(ctx context.Context) error {
		_, first := lab.Testimony(ctx, firstOfPair)
		_, second := lab.Testimony(ctx, secondOfPair)
		running, err := s.RunningCheckpoints(ctx)
		if err == nil && len(running) != 1 {
			err = fmt.Errorf("checkpoints of %v still run", running)
		}
		return errors.Join(first, second, err)
	}, s.Kubelet))
	_, err = s.WebTestimony(ctx, s.Web)
	s.step("web answers as the real pod", err)
}

// takenOver waits until a static pod's container answers at the address.
func (s *testSite) takenOver(ctx context.Context, what, pod, container, address string) {
	s.t.Helper()
	s.step(what+"'s checkpoint runs", site.Soon(ctx, "the checkpoint", func(ctx context.Context) error {
		_, err := s.RunningContainer(ctx, site.Namespace, site.Static(pod), container)
		return err
	}, s.Kubelet))
	_, err := lab.WaitTestimony(ctx, address)
	s.step(what+"'s checkpoint answers", err)
}
