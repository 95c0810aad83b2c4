//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/selfhosted"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
)

// controlPlane is a self-hosted control plane whose steps are reported by a test.
type controlPlane struct {
	*selfhosted.ControlPlane
	timeline
}

func newControlPlane(ctx context.Context, t *testing.T) *controlPlane {
	p := &controlPlane{timeline: timeline{t, time.Now()}}
	var err error
	p.ControlPlane, err = selfhosted.Start(ctx, lab.NodeOptions{}, func(what string) { p.step(what, nil) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		p.showLog(time.Time{})
		t.Fatal(err)
	}
	return p
}

// showLog shows what the checkpointer said.
func (p *controlPlane) showLog(since time.Time) {
	lines, err := site.Log(since)
	if err != nil {
		p.t.Error(err)
	}
	p.t.Logf("the checkpointer's log:\n%s", lines)
}

// part runs a part of the test on the same control plane. It shows the checkpointer's log of its time if it fails.
func (p *controlPlane) part(t *testing.T, name string, run func(p *controlPlane)) bool {
	return t.Run(name, func(t *testing.T) {
		part := &controlPlane{ControlPlane: p.ControlPlane, timeline: timeline{t, time.Now()}}
		t.Cleanup(func() {
			if t.Failed() {
				part.showLog(part.begin)
			}
		})
		run(part)
	})
}

// TestSelfHostedControlPlane: the power of everything is cut, and a cluster whose control plane runs in its own pods
// answers again without a hand; in the end each component is the real pod, one copy each.
func TestSelfHostedControlPlane(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	p := newControlPlane(ctx, t)
	for i := range 3 {
		if !p.part(t, fmt.Sprintf("power cut %d", i+1), func(p *controlPlane) { p.powerCycle(ctx) }) {
			return
		}
	}
}

// powerCycle cuts the power, and waits until the cluster has settled.
func (p *controlPlane) powerCycle(ctx context.Context) {
	p.step("power is cut, of etcd too", p.PowerCut(ctx))
	if p.Answers(ctx) == nil {
		p.t.Fatal("the API answers without power")
	}
	client := uptime.Begin(p.APIReady)
	p.step("power is on", p.PowerOn(ctx))
	p.report(client, p.settles(ctx))
}

// settles waits until the API answers and all has settled, within three minutes.
func (p *controlPlane) settles(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if err := p.WaitAnswers(ctx); err != nil {
		return err
	}
	p.step("the API answers", nil)
	return p.WaitSettled(ctx)
}

// report tells what a client has seen of the API since the kubelet's start.
func (p *controlPlane) report(client *uptime.Watch, err error) {
	p.t.Helper()
	outages := client.End()
	p.step("all has settled", err)
	if len(outages) == 0 {
		p.t.Fatal("the client has seen no outage at all")
	}
	started := p.Kubelet.StartedAt()
	p.t.Logf("API ready %.1f s after the kubelet's start, for good %.1f s after it, settled %.1f s after it; further outages: %v",
		outages[0].To.Sub(started).Seconds(), outages[len(outages)-1].To.Sub(started).Seconds(), time.Since(started).Seconds(), outages[1:])
}

// soon waits for up to five minutes.
func (p *controlPlane) soon(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return lab.Wait(ctx, what, check, p.Kubelet)
}

// passes waits for a fixed time, to see that nothing happens in it.
func passes(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	ctx, cancel := context.WithTimeout(ctx, 2*d)
	defer cancel()
	return lab.Wait(ctx, "time to pass", func(context.Context) error {
		if left := time.Until(end); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	})
}

// said is nil if the checkpointer has logged such a line.
func said(since time.Time, such func(site.LogLine) bool) error {
	lines, err := site.Log(since)
	for _, line := range lines {
		if such(line) {
			return nil
		}
	}
	return errors.Join(err, fmt.Errorf("no such line among %d", len(lines)))
}
