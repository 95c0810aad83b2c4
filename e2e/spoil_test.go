//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// spoil deletes, truncates and overwrites an active manifest by hand. It must be back within a second. What the kubelet
// makes of it is reported: it restarts the pod after a deletion, if it has seen the API server since its start.
func spoil(ctx context.Context, s *testSite, pod, container string) {
	path := site.Active(pod)
	want, err := os.ReadFile(path)
	s.step("manifest is there", err)
	for _, spoiling := range []struct {
		how string
		do  func() error
	}{
		{"deleted", func() error { return os.Remove(path) }},
		{"truncated", func() error { return os.Truncate(path, 0) }},
		{"overwritten", func() error { return os.WriteFile(path, []byte("{}"), 0o600) }},
	} {
		var all []time.Duration
		for range 3 { // the middle one counts: another user of the disk may hold up one sync for long
			before := s.container(ctx, pod, container)
			begin := time.Now()
			s.step(spoiling.how, spoiling.do())
			took, err := restored(path, want, begin)
			s.step(fmt.Sprintf("restored %.1f ms after it was %s", float64(took.Microseconds())/1000, spoiling.how), err)
			all = append(all, took)
			s.report(ctx, pod, container, before)
		}
		if slices.Sort(all); all[1] > time.Second {
			s.t.Errorf("%s: restored after %v, want a second at most", spoiling.how, all)
		}
	}
}

// restored waits, without a pause, until the manifest is as it was, and says after what time.
func restored(path string, want []byte, begin time.Time) (time.Duration, error) {
	for {
		got, err := os.ReadFile(path)
		took := time.Since(begin)
		if err == nil && bytes.Equal(got, want) {
			return took, nil
		}
		if took > 10*time.Second {
			return took, errors.Join(err, fmt.Errorf("after %v it holds %d bytes", took, len(got)))
		}
	}
}

func (s *testSite) container(ctx context.Context, pod, container string) string {
	s.t.Helper()
	var id string
	s.step(container+" runs", site.Soon(ctx, container, func(ctx context.Context) error {
		c, err := s.RunningContainer(ctx, site.Namespace, site.Static(pod), container)
		if err == nil {
			id = c.Id
		}
		return err
	}, s.Kubelet))
	return id
}

// report says whether the kubelet restarted the static pod. It decides within its housekeeping period of 2 s, so that
// two of those are waited for.
func (s *testSite) report(ctx context.Context, pod, container, before string) {
	s.t.Helper()
	decided := time.Now().Add(4 * time.Second)
	restarted := false
	err := lab.Wait(ctx, "the kubelet's decision", func(ctx context.Context) error {
		if c, err := s.RunningContainer(ctx, site.Namespace, site.Static(pod), container); err == nil {
			restarted = restarted || c.Id != before
		}
		if restarted || time.Now().After(decided) {
			return nil
		}
		return errors.New("not restarted so far")
	})
	s.step(fmt.Sprintf("the kubelet restarted the pod: %v", restarted), err)
}
