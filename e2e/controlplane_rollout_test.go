//go:build linux

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/selfhosted"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
)

// TestSelfHostedRollOut: the only API server is rolled out again and again, and comes back by itself each time.
func TestSelfHostedRollOut(t *testing.T) {
	onlyInAll(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Minute)
	defer cancel()
	p := newControlPlane(ctx, t)
	p.part(t, "the port is shared", func(p *controlPlane) { p.rollOuts(ctx, true, 10) })
	p.part(t, "the port is handed over", func(p *controlPlane) { p.rollOuts(ctx, false, 10) })
}

// rollOuts measures roll-outs between revisions that share the port, or don't.
func (p *controlPlane) rollOuts(ctx context.Context, sharing bool, times int) {
	p.rollOut(ctx, selfhosted.Shape{PortSharing: sharing, Args: []string{"--v=1"}})
	for i := range times {
		client, began := uptime.Begin(p.APIReady), time.Now()
		p.rollOut(ctx, selfhosted.Shape{PortSharing: sharing, Args: []string{fmt.Sprintf("--v=%d", i%2+2)}})
		p.reportSince(began, client.End())
	}
}

// rollOut applies a revision of the API server, and waits until it is what runs.
func (p *controlPlane) rollOut(ctx context.Context, shape selfhosted.Shape) {
	p.t.Helper()
	p.step("a revision of the API server is applied", p.ApplyAPIServer(ctx, shape))
	p.step("it is rolled out", p.soon(ctx, "the roll-out", func(ctx context.Context) error {
		return p.WaitDaemonSet(ctx, site.Namespace, string(selfhosted.APIServer))
	}))
	p.step("all has settled", p.soon(ctx, "the cluster to settle", p.Settled))
}

// reportSince tells what a client has seen of the API since something was done.
func (p *controlPlane) reportSince(began time.Time, outages uptime.Outages) {
	p.t.Helper()
	forGood := time.Duration(0)
	if len(outages) > 0 {
		forGood = outages[len(outages)-1].To.Sub(began)
	}
	for _, o := range outages {
		p.t.Logf("after %.1f s for %.1f s: %v", o.From.Sub(began).Seconds(), o.Length().Seconds(), o.Why)
	}
	p.t.Logf("outages of the API: %v; it was up for good after %.1f s", outages, forGood.Seconds())
}
