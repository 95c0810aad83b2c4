//go:build linux

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestServiceAccount: with a credential of its own, which is itself a copy on disk after the power cut, the checkpointer does
// the same as with the node's, and it is served again when the API server is back.
func TestServiceAccount(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSiteWith(ctx, t, site.Options{Kustomization: writeServiceAccountOverlay(t)})
	before := s.testimonies(ctx, s.Web)
	powerCut(ctx, s, before)
	returned := time.Now()
	apiServerReturns(ctx, s, before)
	s.step("the API server serves the checkpointer", s.says(ctx, "serving", returned))
}
