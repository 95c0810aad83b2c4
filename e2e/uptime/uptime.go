// Package uptime is a client that asks a service over and over, each time by a connection of its own, and tells when it
// got no answer.
package uptime

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	every   = 50 * time.Millisecond
	patient = time.Second // for one answer
)

// Outage is a time without an answer: from the last question that was answered to the next answer.
type Outage struct {
	From, To time.Time // To is zero while it lasts
	Why      error     // what the first unanswered question got
}

// Length is how long the outage took, or takes by now.
func (o Outage) Length() time.Duration {
	if o.To.IsZero() {
		return time.Since(o.From)
	}
	return o.To.Sub(o.From)
}

// Outages come in order of time.
type Outages []Outage

// Longest is 0 without an outage.
func (all Outages) Longest() (longest time.Duration) {
	for _, o := range all {
		longest = max(longest, o.Length())
	}
	return longest
}

func (all Outages) String() string {
	if len(all) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %.1f s in all, the longest %.1f s", len(all), all.total().Seconds(), all.Longest().Seconds())
}

func (all Outages) total() (total time.Duration) {
	for _, o := range all {
		total += o.Length()
	}
	return total
}

// Watch is one client at work.
type Watch struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	outages Outages
}

// Begin starts to ask. The question must keep no connection. End the watch with End.
func Begin(ask func(context.Context) error) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{cancel: cancel, done: make(chan struct{})}
	go w.run(ctx, ask)
	return w
}

func (w *Watch) run(ctx context.Context, ask func(context.Context) error) {
	defer close(w.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	answered := time.Now() // when the last answered question was asked
	for {
		asked := time.Now()
		question, cancel := context.WithTimeout(ctx, patient)
		err := ask(question)
		cancel()
		if ctx.Err() != nil {
			return
		}
		w.note(answered, err)
		if err == nil {
			answered = asked
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watch) note(answered time.Time, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.outages) - 1
	down := last >= 0 && w.outages[last].To.IsZero()
	switch {
	case err != nil && !down:
		w.outages = append(w.outages, Outage{From: answered, Why: err})
	case err == nil && down:
		w.outages[last].To = time.Now()
	}
}

// Outages are the outages until now.
func (w *Watch) Outages() Outages {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(Outages(nil), w.outages...)
}

// End stops asking and returns all outages.
func (w *Watch) End() Outages {
	w.cancel()
	<-w.done
	return w.Outages()
}
