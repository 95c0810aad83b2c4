//go:build linux

package e2e

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
)

//go:embed testdata/edge.yaml
var edgeWorkloads []byte

// TestClientsOfAnEdgeNode: what clients of three workloads see of a power cut without an API server, and of the hand-over
// when it is back. web is on the pod network; ledger too, but its data must not be written to by two copies; broker, an
// MQTT broker, and gateway have the host's network.
func TestClientsOfAnEdgeNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("there is data", writeData())
	s.step("the broker's image is imported", s.ImportProgram(ctx, "mochi"))
	s.step("workloads are applied", s.Apply(ctx, edgeWorkloads))
	ledger, broker := s.podOf(ctx, "ledger"), s.podOf(ctx, "broker")
	dirs := []string{"/data", "/etc/settings", "/etc/keys"}
	before := s.ask(ctx, ledger, dirs...)
	s.step("the broker lets clients connect", site.Soon(ctx, "the broker", connectMQTT))

	s.step("API server is stopped", s.APIServer.Stop(ctx))
	clients := map[string]*uptime.Watch{
		"web":     uptime.Begin(s.either(s.Web)),
		"ledger":  uptime.Begin(s.either(ledger)),
		"gateway": uptime.Begin(func(ctx context.Context) error { _, err := lab.Testimony(ctx, site.GatewayAddress); return err }),
		"broker":  uptime.Begin(connectMQTT),
	}
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	s.step("all answer", site.Soon(ctx, "every client's answer", func(context.Context) error {
		for name, client := range clients {
			if o := client.Outages(); len(o) == 0 || o[len(o)-1].To.IsZero() {
				return fmt.Errorf("%s's outages: %v", name, o)
			}
		}
		return nil
	}, s.Kubelet))
	for name, client := range clients {
		t.Logf("power cut, %s: a client had no answer for %.1f s, until %.1f s after the kubelet's start",
			name, client.Outages().Longest().Seconds(), client.Outages()[0].To.Sub(s.Kubelet.StartedAt()).Seconds())
	}
	if diff := cmp.Diff(before.Dirs, s.ask(ctx, site.Static(ledger), dirs...).Dirs); diff != "" {
		t.Errorf("what ledger sees differs (-before +after):\n%s", diff)
	}

	handover := time.Now()
	s.step("API server is back", s.APIServer.Start(ctx))
	s.step("the checkpoints are withdrawn", lab.Wait(ctx, "the hand-over", func(ctx context.Context) error {
		running, err := s.RunningCheckpoints(ctx)
		if err == nil && len(running) != 1 {
			err = fmt.Errorf("checkpoints of %v still run", running)
		}
		return errors.Join(err, site.Absent(site.Active(ledger)), site.Absent(site.Active(broker)))
	}, s.Kubelet))
	for _, name := range []string{"web", "ledger", "gateway", "broker"} {
		s.step(name+" is ready", s.WaitDaemonSet(ctx, site.Namespace, name))
		var gaps uptime.Outages
		for _, outage := range clients[name].End() {
			if outage.From.After(handover) {
				gaps = append(gaps, outage)
			}
		}
		t.Logf("hand-over, %s: times without an answer: %v", name, gaps)
		if name == "web" && len(gaps) > 0 {
			t.Errorf("web, on the pod network, had a gap: %v", gaps[0].Why)
		}
	}
	s.step("one copy of each runs", s.oneCopyOfEach(ctx))
}

// podOf waits until a DaemonSet is ready and its pod has a stored checkpoint, and returns the pod's name.
func (s *testSite) podOf(ctx context.Context, daemonSet string) (name string) {
	s.t.Helper()
	s.step(daemonSet+" is ready", s.WaitDaemonSet(ctx, site.Namespace, daemonSet))
	pods, err := s.PodsOf(ctx, site.Namespace, "app="+daemonSet)
	s.step(daemonSet+" has a pod", err)
	name = pods[0].Name
	s.step(daemonSet+" has a stored checkpoint", site.Soon(ctx, "the checkpoint of "+daemonSet, func(context.Context) error {
		return site.Exists(site.Stored(name))
	}))
	return name
}

// either asks a witness on the pod network as the real pod or as its checkpoint, as a Service that selects both does.
func (s *testSite) either(pod string) func(context.Context) error {
	return func(ctx context.Context) (all error) {
		for _, name := range []string{pod, site.Static(pod)} {
			ip, err := s.PodIP(ctx, site.Namespace, name)
			if err == nil {
				_, err = lab.Testimony(ctx, ip+":8080")
			}
			if err == nil {
				return nil
			}
			all = errors.Join(all, err)
		}
		return all
	}
}

// connectMQTT is what a client of the broker does first (MQTT 3.1.1, sections 3.1 and 3.2).
func connectMQTT(ctx context.Context) error {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", lab.NodeAddress+":1883")
	if err != nil {
		return err
	}
	defer connection.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := connection.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := connection.Write([]byte("\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00")); err != nil {
		return err
	}
	answer, accepted := make([]byte, 4), []byte{0x20, 2, 0, 0}
	if _, err := io.ReadFull(connection, answer); err != nil {
		return err
	}
	if !bytes.Equal(answer, accepted) {
		return fmt.Errorf("the broker answered %x", answer)
	}
	return nil
}
