//go:build linux

package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestSelfHostedLoss: what the node needs beside its own disk is lost while it is off. The checkpoints start, and none is
// removed.
func TestSelfHostedLoss(t *testing.T) {
	onlyInAll(t)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	p := newControlPlane(ctx, t)
	for _, part := range []struct {
		name string
		run  func(*controlPlane)
	}{
		{"certificate expired", func(p *controlPlane) { p.badCertificate(ctx, pki.Subject{Lifetime: -time.Minute}) }},
		{"certificate not valid yet", func(p *controlPlane) {
			p.badCertificate(ctx, pki.Subject{ValidFrom: time.Now().Add(12 * time.Hour)})
		}},
	} {
		if !p.part(t, part.name, part.run) {
			return
		}
	}
}

// badCertificate: the API server refuses the node, and serves everybody else from its checkpoint.
func (p *controlPlane) badCertificate(ctx context.Context, how pki.Subject) {
	node := lab.NodeSubject()
	how.Name, how.Organizations = node.Name, node.Organizations
	bad, err := p.Issue(how)
	p.step("power is cut, of etcd too", errors.Join(err, p.PowerCut(ctx)))
	before, cut := storedFiles(p.t), time.Now()
	p.step("the node's certificate is of another time", p.SetClientCertificate(bad))
	p.step("power is on", p.PowerOn(ctx))
	p.step("the API answers", p.soon(ctx, "the API", p.Answers))
	p.step("the checkpointer is refused", p.soon(ctx, "the line about the API server", func(context.Context) error {
		return said(cut, func(line site.LogLine) bool { return line.To == "refusing" })
	}))
	p.step("two minutes pass, longer than the grace and the confirmation", passes(ctx, 2*time.Minute))
	p.areThere(before)
	p.step("the API still answers", p.Answers(ctx))
	good, err := p.Issue(node)
	p.step("the certificate is renewed", errors.Join(err, p.SetClientCertificate(good)))
	p.step("the kubelet is restarted", errors.Join(p.Kubelet.Stop(ctx), p.Kubelet.Start(ctx)))
	p.step("all has settled", p.soon(ctx, "the cluster to settle", p.Settled))
}

// areThere ends the test if a stored manifest is not.
func (p *controlPlane) areThere(before []string) {
	p.t.Helper()
	for _, path := range before {
		p.step(filepath.Base(path)+" is there", site.Exists(path))
	}
}

func storedFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(site.InactiveDir + "/" + site.Namespace + "_*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stored manifest in %s: %v", site.InactiveDir, err)
	}
	return paths
}
