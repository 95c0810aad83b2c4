package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestMain(m *testing.M) {
	LogThrough(zerolog.Nop())
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] // the others sleep until a time that another test's clock showed
	os.Exit(m.Run())
}

// running is a client that runs, and what it says.
type running struct {
	t     *testing.T
	mu    sync.Mutex
	all   []Facts
	more  chan struct{}
	lines bytes.Buffer
	*Client
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(p)
}

func (r *running) report(facts Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, facts)
	close(r.more)
	r.more = make(chan struct{})
}

func run(t *testing.T, kubeconfig string) *running {
	t.Helper()
	return runWith(t, kubeconfig, func(*Client) {})
}

// runWith runs a client that was changed before.
func runWith(t *testing.T, kubeconfig string, change func(*Client)) *running {
	t.Helper()
	r := &running{t: t, more: make(chan struct{})}
	client, err := New(Config{Kubeconfig: kubeconfig, NodeName: node}, zerolog.New(r))
	if err != nil {
		t.Fatal(err)
	}
	change(client)
	r.Client = client
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); client.Run(ctx, r.report) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// await waits until the latest facts are as wanted, and says after how long.
func (r *running) await(within time.Duration, what string, wanted func(Facts) bool) time.Duration {
	r.t.Helper()
	start, timeout := time.Now(), time.After(within)
	for {
		r.mu.Lock()
		more := r.more
		r.mu.Unlock()
		latest := r.latest()
		if wanted(latest) {
			took := time.Since(start)
			r.t.Logf("%s after %v", what, took.Round(time.Millisecond))
			return took
		}
		select {
		case <-more:
		case <-timeout:
			r.t.Fatalf("not %s within %v; facts: %v, %q; log:\n%s", what, within, latest.State, latest.Detail, r.log(""))
		}
	}
}

func (r *running) latest() Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return Facts{}
	}
	return r.all[len(r.all)-1]
}

func (r *running) awaitState(within time.Duration, state checkpoint.API) {
	r.t.Helper()
	r.await(within, state.String(), func(f Facts) bool { return f.State == state })
}

func (r *running) awaitServing(within time.Duration, pods ...string) {
	r.t.Helper()
	r.await(within, "serving "+strings.Join(pods, " "), func(f Facts) bool {
		return f.State == checkpoint.APIServing && f.Current && f.Pods != nil && slices.Equal(names(f), pods)
	})
}

func names(f Facts) []string {
	var names []string
	for _, pod := range f.Pods {
		names = append(names, pod.Name)
	}
	return names
}

// log is what was logged above debug; with a field, only its values.
func (r *running) log(field string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for line := range strings.Lines(r.lines.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			r.t.Fatal(err)
		}
		switch {
		case field == "":
			all = append(all, line)
		case fields["level"] != "debug":
			all = append(all, fmt.Sprint(fields[field]))
		}
	}
	return strings.Join(all, " ")
}

// states are all that were reported, each once in a row.
func (r *running) states() []checkpoint.API {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []checkpoint.API
	for _, f := range r.all {
		states = append(states, f.State)
	}
	return slices.Compact(states)
}
