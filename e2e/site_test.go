//go:build linux

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

// testSite is a site whose steps are reported by a test.
type testSite struct {
	*site.Site
	timeline
}

func newSite(ctx context.Context, t *testing.T, node lab.NodeOptions) *testSite {
	return newSiteWith(ctx, t, site.Options{Node: node})
}

func newSiteWith(ctx context.Context, t *testing.T, o site.Options) *testSite {
	s := &testSite{timeline: timeline{t, time.Now()}}
	var err error
	s.Site, err = site.Start(ctx, o, func(what string) { s.step(what, nil) })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			t.Logf("the checkpointer's log:\n%s", s.log(time.Time{}))
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// in is the site for a part of the test.
func (s *testSite) in(t *testing.T) *testSite {
	return &testSite{Site: s.Site, timeline: timeline{t, time.Now()}}
}

// part is one of several that run on one site.
type part struct {
	name string
	run  func(context.Context, *testSite)
}

// inOrder runs parts of which each rests on those before it.
func (s *testSite) inOrder(ctx context.Context, parts []part) {
	for _, p := range parts {
		if !s.t.Run(p.name, func(t *testing.T) { p.run(ctx, s.in(t)) }) {
			return
		}
	}
}

func (s *testSite) log(since time.Time) site.LogLines {
	s.t.Helper()
	lines, err := site.Log(since)
	if err != nil {
		s.t.Error(err)
	}
	return lines
}

// testimonies are what the two workloads say of themselves.
type testimonies struct{ web, gateway witness.Testimony }

func (s *testSite) testimonies(ctx context.Context, web string) (all testimonies) {
	s.t.Helper()
	var err error
	all.web, err = s.WebTestimony(ctx, web)
	s.step("web answers", err)
	all.gateway, err = s.GatewayTestimony(ctx)
	s.step("gateway answers", err)
	return all
}
