package kubelet

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
)

// patience is how long a test waits for what must happen: long, so that it fails for no other reason on a busy machine.
const patience = 30 * time.Second

// journal collects what a source logs.
type journal struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced at each line, once somebody waits
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	if j.more != nil {
		close(j.more)
		j.more = nil
	}
	return len(line), nil
}

func (j *journal) logger() zerolog.Logger { return zerolog.New(j) }

// messages are the messages at info and above.
func (j *journal) messages(t *testing.T) (messages []string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		var entry struct{ Level, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Level != "debug" {
			messages = append(messages, entry.Message)
		}
	}
	return messages
}

// count is how many messages hold text.
func (j *journal) count(t *testing.T, text string) (n int) {
	t.Helper()
	for _, message := range j.messages(t) {
		if strings.Contains(message, text) {
			n++
		}
	}
	return n
}

// holds says whether text was logged, in any field.
func (j *journal) holds(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, func(line string) bool { return strings.Contains(line, text) })
}

// await waits until text was logged.
func (j *journal) await(t *testing.T, text string) {
	t.Helper()
	for !j.holds(text) {
		j.mu.Lock()
		if j.more == nil {
			j.more = make(chan struct{})
		}
		more := j.more
		j.mu.Unlock()
		if !j.holds(text) {
			receive(t, more, "log line that says "+text)
		}
	}
}

// reports is what a source has reported. Its report never blocks, as that of the agent.
type reports[T any] struct {
	mu   sync.Mutex
	all  []T
	more chan struct{} // closed and replaced at each report
}

func newReports[T any]() *reports[T] { return &reports[T]{more: make(chan struct{})} }

func (r *reports[T]) add(facts T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, facts)
	close(r.more)
	r.more = make(chan struct{})
}

func (r *reports[T]) snapshot() ([]T, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all), r.more
}

func (r *reports[T]) count() int {
	all, _ := r.snapshot()
	return len(all)
}

// await waits until the latest report is as wanted, and returns it.
func (r *reports[T]) await(t *testing.T, what string, wanted func(T) bool) T {
	t.Helper()
	deadline := time.After(patience)
	for {
		all, more := r.snapshot()
		if len(all) > 0 && wanted(all[len(all)-1]) {
			return all[len(all)-1]
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no report that it is %s; reports: %+v", what, all)
		}
	}
}

// source runs until the end of the test.
func source(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	t.Cleanup(func() { cancel(); receive(t, done, "the end of the source") })
}

// serve runs a gRPC server on a socket. stop breaks its connections and removes the socket, as the end of its process
// and the start of another do.
func serve(t *testing.T, socket string, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	must(t, err)
	server := grpc.NewServer(options...)
	register(server)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	stop = sync.OnceFunc(func() { server.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

// shortDir is a directory whose path leaves room for a socket's name: a socket's path has at most 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "k")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func receive[T any](t *testing.T, from <-chan T, what string) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
	return value
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
