package kubelet

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestRuntimeWithoutEventsIsListed(t *testing.T) {
	m := newMachine(t)
	m.fake.noEvents = true
	m.fake.run("a", 1, nil)
	stop := m.start(t)
	m.watch(t)
	m.awaitReady(t, "a")
	m.fake.set(func(f *fakeRuntime) { f.run("b", 1, nil) })
	m.awaitReady(t, "a", "b")
	m.fake.set(func(f *fakeRuntime) { f.stop("a") })
	m.awaitReady(t, "b")
	if all, _ := m.snapshot(); slices.ContainsFunc(all, func(f RuntimeFacts) bool { return f.State != checkpoint.RuntimeKnown }) {
		t.Error("it was unknown in between, though it answered each list")
	}
	if got := m.log.count(t, "enable_pod_events"); got != 1 {
		t.Errorf("said %d times that it sends no events: %q", got, m.log.messages(t))
	}

	stop()
	m.awaitUnknown(t)

	// Somebody turns them on.
	m.fake.set(func(f *fakeRuntime) { f.noEvents = false })
	m.start(t)
	m.awaitReady(t, "b")
	receive(t, m.fake.subscribed, "subscription")
	m.fake.startPod("c")
	m.awaitReady(t, "b", "c")
}

func TestBackoffGrowsToItsEnd(t *testing.T) {
	retry := newBackoff()
	if first := retry.NextBackOff(); first > 100*time.Millisecond {
		t.Errorf("the first try comes after %v", first)
	}
	for range 50 {
		retry.NextBackOff()
	}
	if wait := retry.NextBackOff(); wait < longestWait/2 || wait > longestWait*3/2 {
		t.Errorf("in the end a try comes after %v", wait)
	}
}

func TestRuntimeThatRestartsIsListedAnew(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 1, nil)
	m.watch(t)
	m.awaitUnknown(t)
	for _, next := range []string{"b", "c"} {
		stop := m.start(t)
		m.await(t, "known", func(f RuntimeFacts) bool { return f.State == checkpoint.RuntimeKnown })
		stop()
		if facts := m.awaitUnknown(t); facts.Sandboxes != nil {
			t.Errorf("unknown, and yet there are %v", facts.Sandboxes)
		}
		m.fake.set(func(f *fakeRuntime) { clear(f.sandboxes); f.run(next, 1, nil) }) // while nobody watched
	}
	m.start(t)
	m.awaitReady(t, "c")
	if got := m.log.count(t, "does not answer"); got != 3 {
		t.Errorf("said %d times that it does not answer, want once for each time: %q", got, m.log.messages(t))
	}
	if got := m.log.count(t, "no events"); got != 0 {
		t.Error("a restart was taken for a runtime without events")
	}
}

func TestRuntimeThatHangsInAListIsUnknown(t *testing.T) {
	m := newMachine(t)
	m.timeout = 200 * time.Millisecond
	m.fake.run("a", 1, nil)
	m.start(t)
	m.watch(t)
	m.awaitReady(t, "a")
	receive(t, m.fake.subscribed, "subscription")
	m.fake.set(func(f *fakeRuntime) { f.hang = true })
	m.fake.notify("a", cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	m.awaitUnknown(t)
	if err := m.StopSandbox(t.Context(), "a"); err == nil {
		t.Error("a stop that hangs is no error")
	}
	m.fake.set(func(f *fakeRuntime) { f.hang = false })
	m.awaitReady(t, "a")
}

// TestRuntimeThatHangsAltogether freezes it, as SIGSTOP does: its sockets stay open. gRPC allows no shorter ping.
func TestRuntimeThatHangsAltogether(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.ping, m.timeout = 10*time.Second, time.Second
	m.fake.run("a", 1, nil)
	m.fake.start(t, m.dir, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second}))
	link := newLink(t, filepath.Join(m.dir, "link.sock"), filepath.Join(m.dir, "cri.sock"))
	m.endpoint = "unix://" + filepath.Join(m.dir, "link.sock")
	m.watch(t)
	for range 2 {
		receive(t, m.fake.listed, "list")
	}
	m.fake.set(func(f *fakeRuntime) { f.run("b", 1, nil) })
	m.fake.notify("b", cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	m.awaitReady(t, "a", "b") // the last question is answered: only a ping can tell
	start := time.Now()
	link.freeze()
	m.awaitUnknown(t)
	if took := time.Since(start); took < m.ping/2 {
		t.Errorf("unknown after %v: somebody asked", took)
	}
	link.thaw()
	m.awaitReady(t, "a", "b")
}
