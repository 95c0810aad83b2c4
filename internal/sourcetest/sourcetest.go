// Package sourcetest says what the event sources must see, whatever they watch: the fakes of the unit tests, or a real
// API server, kubelet and container runtime. What holds for the fakes only would prove nothing.
package sourcetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// Process is something that is watched, and that can end.
type Process interface {
	Start(context.Context) error // returns when it serves
	Kill(context.Context) error  // returns when it has ended
}

// latest is what a source reported last.
type latest[T any] struct {
	mu    sync.Mutex
	facts T
	more  chan struct{} // closed and replaced at each report
}

func (l *latest[T]) report(facts T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = facts
	close(l.more)
	l.more = make(chan struct{})
}

// watch runs a source until the test ends.
func watch[T any](t *testing.T, run func(context.Context, func(T))) *latest[T] {
	t.Helper()
	l := &latest[T]{more: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx, l.report) }()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

// await waits until the latest facts are as wanted.
func (l *latest[T]) await(t *testing.T, within time.Duration, what string, wanted func(T) bool) T {
	t.Helper()
	start, timeout := time.Now(), time.After(within)
	for {
		l.mu.Lock()
		facts, more := l.facts, l.more
		l.mu.Unlock()
		if wanted(facts) {
			t.Logf("%s after %.2f s", what, time.Since(start).Seconds())
			return facts
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("not %s within %v: %+v", what, within, facts)
		}
	}
}

func logger(t *testing.T) zerolog.Logger {
	return zerolog.New(zerolog.NewTestWriter(t)).With().Timestamp().Logger()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
