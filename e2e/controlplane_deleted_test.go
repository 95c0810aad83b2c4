//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/selfhosted"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// TestSelfHostedDaemonSetDeleted: the API stays, by the checkpoint, which is kept because the API lives on it. The DaemonSet
// that is made again takes over.
func TestSelfHostedDaemonSetDeleted(t *testing.T) {
	onlyInAll(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	p := newControlPlane(ctx, t)
	parents, err := p.Parents(ctx, selfhosted.APIServer)
	p.step("the API answers", err)
	client, began := uptime.Begin(p.APIReady), time.Now()
	_, err = p.Kubectl(ctx, "delete", "daemonset", "-n", site.Namespace, string(selfhosted.APIServer))
	p.step("the API server's DaemonSet is deleted", err)
	p.step("status says that its checkpoint is load-bearing", p.soon(ctx, "status", func(ctx context.Context) error {
		return p.statusOf(ctx, func(l status.Lineage) bool { return l.LoadBearing })
	}))
	p.step("the log says so", p.soon(ctx, "the log", func(context.Context) error {
		return said(began, func(line site.LogLine) bool { return strings.HasPrefix(line.Message, "the checkpoint is load-bearing") })
	}))
	p.serves(ctx, parents[0].Name, 2*time.Minute)
	p.reportSince(began, client.End())
	p.rollOut(ctx, p.Shape)
	p.step("the checkpoint isn't load-bearing any more", p.soon(ctx, "status", func(ctx context.Context) error {
		return p.statusOf(ctx, func(l status.Lineage) bool { return !l.LoadBearing })
	}))
}

// statusOf is nil if it is so with a checkpoint of the API server.
func (p *controlPlane) statusOf(ctx context.Context, so func(status.Lineage) bool) error {
	out, _, err := onHost(ctx, "status", "--json")
	var report status.Report
	if err = errors.Join(err, json.Unmarshal([]byte(out), &report)); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if !slices.ContainsFunc(report.Lineages, func(l status.Lineage) bool {
		return strings.HasPrefix(l.Pod, string(selfhosted.APIServer)) && so(l)
	}) {
		return fmt.Errorf("it isn't so: %s", out)
	}
	return nil
}

// serves sees that the checkpoint of a pod is the API server, and still the same one after a while.
func (p *controlPlane) serves(ctx context.Context, pod string, d time.Duration) {
	p.t.Helper()
	p.step("the API answers", p.soon(ctx, "the API", p.Answers))
	running := func() string {
		c, err := p.RunningContainer(ctx, site.Namespace, site.Static(pod), string(selfhosted.APIServer))
		p.step("the checkpoint of "+pod+" runs", err)
		return c.Id
	}
	before := running()
	p.step(d.String()+" pass", passes(ctx, d))
	if running() != before {
		p.t.Error("it was started again meanwhile")
	}
	p.step("the API still answers", p.soon(ctx, "the API", p.Answers))
}
