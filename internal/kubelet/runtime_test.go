package kubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// machine is a node with a runtime, and what watches it.
type machine struct {
	dir  string
	fake *fakeRuntime
	log  *journal
	*Runtime
	*reports[RuntimeFacts]
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{dir: shortDir(t), fake: newFakeRuntime(), log: new(journal), reports: newReports[RuntimeFacts]()}
	m.Runtime = NewRuntime("unix://"+filepath.Join(m.dir, "cri.sock"), patience, m.log.logger())
	return m
}

func (m *machine) start(t *testing.T) (stop func()) {
	t.Helper()
	return m.fake.start(t, m.dir)
}

func (m *machine) watch(t *testing.T) {
	t.Helper()
	source(t, func(ctx context.Context) { m.Run(ctx, m.add) })
}

func (m *machine) awaitUnknown(t *testing.T) RuntimeFacts {
	t.Helper()
	return m.await(t, "unknown", func(f RuntimeFacts) bool { return f.State == checkpoint.RuntimeUnknown })
}

// awaitReady waits until these are the sandboxes that are ready.
func (m *machine) awaitReady(t *testing.T, ids ...string) RuntimeFacts {
	t.Helper()
	return m.await(t, fmt.Sprintf("ready %v", ids), func(f RuntimeFacts) bool {
		return f.State == checkpoint.RuntimeKnown && slices.Equal(readyIn(f), ids)
	})
}

func readyIn(f RuntimeFacts) (ids []string) {
	for _, s := range f.Sandboxes {
		if s.Ready {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

func TestSandboxesAreWhatTheRuntimeLists(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 2, map[string]string{sourceAnnotation: "api"})
	m.fake.run("b", 1, map[string]string{sourceAnnotation: "file", "checkpointer.alpha.coreos.com/checkpoint-of": "web"})
	m.fake.containers["b-c0"].State = cri.ContainerState_CONTAINER_EXITED
	m.start(t)
	m.watch(t)
	facts := m.awaitReady(t, "a", "b")
	a, b := facts.Sandboxes[0], facts.Sandboxes[1]
	if a.UID != "uid-a" || a.Namespace != "kube-system" || a.Name != "pod-a" || a.FromFile || a.CheckpointOf != "" {
		t.Errorf("got %+v", a)
	}
	if want := []checkpoint.Container{{Name: "c0", State: checkpoint.ContainerRunning}, {Name: "c1", State: checkpoint.ContainerRunning}}; !slices.Equal(a.Containers, want) {
		t.Errorf("containers %v, want %v", a.Containers, want)
	}
	if !b.FromFile || b.CheckpointOf != "web" || b.Containers[0].State != checkpoint.ContainerExited {
		t.Errorf("got %+v", b)
	}
}

func TestPodThatClaimsToBeACheckpointIsNone(t *testing.T) {
	m := newMachine(t)
	m.fake.run("forged", 1, map[string]string{sourceAnnotation: "api", "checkpointer.alpha.coreos.com/checkpoint-of": "web"})
	m.fake.run("unknown", 1, map[string]string{"checkpointer.alpha.coreos.com/checkpoint-of": "web"})
	m.start(t)
	m.watch(t)
	for _, s := range m.awaitReady(t, "forged", "unknown").Sandboxes {
		if s.CheckpointOf != "" {
			t.Errorf("%s is taken for a checkpoint of %s", s.ID, s.CheckpointOf)
		}
	}
}

func TestEventsAreFollowed(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	m.watch(t)
	receive(t, m.fake.subscribed, "subscription")
	m.fake.startPod("a")
	m.awaitReady(t, "a")
	m.fake.startPod("b")
	m.awaitReady(t, "a", "b")
	must(t, m.StopSandbox(t.Context(), "a"))
	m.awaitReady(t, "b")
}

// TestSlowReaderDoesNotHoldUpTheRuntime stalls whoever reads the facts while 200 pods start. The test after it shows that
// this fake can be held up.
func TestSlowReaderDoesNotHoldUpTheRuntime(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	stalled, resume := make(chan struct{}, 1), make(chan struct{})
	source(t, func(ctx context.Context) {
		m.Run(ctx, func(f RuntimeFacts) {
			m.add(f)
			select {
			case stalled <- struct{}{}:
			default:
			}
			<-resume
		})
	})
	receive(t, m.fake.subscribed, "subscription")
	receive(t, stalled, "first report")
	receive(t, startPods(m.fake, 200), "end of the starts: the runtime is held up")
	if m.count() != 1 {
		t.Fatalf("%d reports: nobody was stalled", m.count())
	}
	close(resume)
	m.await(t, "all there", func(f RuntimeFacts) bool { return len(readyIn(f)) == 200 })
}

func TestReaderThatDoesNotDrainHoldsUpTheFake(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	conn, err := dial(m.endpoint)
	must(t, err)
	defer conn.Close()
	_, err = cri.NewRuntimeServiceClient(conn).GetContainerEvents(t.Context(), &cri.GetEventsRequest{})
	must(t, err)
	receive(t, m.fake.subscribed, "subscription")
	select {
	case <-startPods(m.fake, 200):
		t.Error("200 pods started though nobody reads their events: the fake proves nothing")
	case <-time.After(time.Second):
	}
}

func startPods(fake *fakeRuntime, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range n {
			fake.startPod(fmt.Sprintf("pod-%03d", i))
		}
	}()
	return done
}

func TestBacklogOfEventsIsHarmless(t *testing.T) {
	m := newMachine(t)
	m.fake.startPod("old")
	m.fake.set(func(f *fakeRuntime) { delete(f.sandboxes, "old"); f.run("new", 1, nil) })
	m.start(t)
	m.watch(t)
	m.awaitReady(t, "new")
}

func TestLostDoubledAndStrangeEvents(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	m.watch(t)
	receive(t, m.fake.subscribed, "subscription")
	m.fake.startPod("a")
	m.awaitReady(t, "a")

	m.fake.set(func(f *fakeRuntime) { f.run("b", 1, nil) }) // its events are lost
	m.fake.queue.send(&cri.ContainerEventResponse{ContainerId: "?"})
	m.awaitReady(t, "a", "b")

	before := m.count()
	for range 20 {
		m.fake.notify("a", cri.ContainerEventType_CONTAINER_STARTED_EVENT) // doubled
		m.fake.notify("a", cri.ContainerEventType_CONTAINER_DELETED_EVENT) // out of order
		m.fake.notify("a", cri.ContainerEventType(99))
		m.fake.notify("nobody", cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
	m.fake.startPod("c")
	m.awaitReady(t, "a", "b", "c")
	all, _ := m.snapshot()
	for _, f := range all[before:] {
		if !slices.Contains(readyIn(f), "a") || f.State != checkpoint.RuntimeKnown {
			t.Errorf("an event was believed: %+v", f)
		}
	}
}

func TestOrderOfAListIsNoNews(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 8, nil)
	m.start(t)
	m.watch(t)
	m.awaitReady(t, "a")
	for range 30 {
		m.fake.notify("a", cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	}
	m.fake.startPod("b")
	facts := m.awaitReady(t, "a", "b")
	if m.count() > 1+3 { // a, and b without and with its container
		t.Errorf("%d reports of two pods", m.count())
	}
	for i, c := range facts.Sandboxes[0].Containers {
		if c.Name != fmt.Sprintf("c%d", i) {
			t.Fatalf("containers are not in the order of their creation: %v", facts.Sandboxes[0].Containers)
		}
	}
}
