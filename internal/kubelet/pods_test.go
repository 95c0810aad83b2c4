package kubelet

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// node is a kubelet's root directory, with what watches it.
type node struct {
	dir     string
	kubelet *fakeKubelet
	pods    *Pods
	log     *journal
	*reports[PodsFacts]
}

// newNode makes one whose kubelet does not run yet. With a Pods API it has the directory of its socket.
func newNode(t *testing.T, podsAPI bool) *node {
	t.Helper()
	n := &node{dir: shortDir(t), kubelet: newFakeKubelet(), log: new(journal), reports: newReports[PodsFacts]()}
	if podsAPI {
		must(t, os.Mkdir(filepath.Join(n.dir, "pods-api"), 0o750))
	}
	n.pods = NewPods(n.dir, n.log.logger())
	return n
}

// watch starts the sources of the agent.
func (n *node) watch(t *testing.T) {
	t.Helper()
	source(t, func(ctx context.Context) { NewVolumes(n.pods, n.log.logger()).Run(ctx, func(checkpoint.UID) {}) })
	receive(t, n.pods.kick, "watch of the kubelet's directories")
	source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) })
}

func (n *node) start(t *testing.T) (stop func()) {
	t.Helper()
	return serve(t, filepath.Join(n.dir, "pods-api", "pods-api.sock"), func(s grpc.ServiceRegistrar) { podsv1.RegisterPodsServer(s, n.kubelet) })
}

func (n *node) awaitState(t *testing.T, state checkpoint.Kubelet) PodsFacts {
	t.Helper()
	return n.await(t, state.String(), func(f PodsFacts) bool { return f.State == state })
}

func (n *node) awaitManaged(t *testing.T, uids ...checkpoint.UID) PodsFacts {
	t.Helper()
	return n.await(t, "managing what it should", func(f PodsFacts) bool {
		return f.State == checkpoint.KubeletSynced && slices.Equal(slices.Sorted(maps.Keys(f.Managed)), uids)
	})
}

func TestKubeletIsUnsyncedUntilItHasSeenTheAPIServer(t *testing.T) {
	n := newNode(t, true)
	n.start(t)
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletUnsynced)
	if n.count() != 1 {
		t.Errorf("%d reports, want one: a kubelet that waits for the API server answers", n.count())
	}
	n.kubelet.sync(podOf("1", ready), podOf("2"))
	n.pods.Kick()
	facts := n.awaitManaged(t, "1", "2")
	if !facts.Managed["1"].Ready || facts.Managed["2"].Ready {
		t.Errorf("managed %v, want only 1 ready", facts.Managed)
	}
}

func TestListedIsNotManaged(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync(
		podOf("a"),
		podOf("pending", phase(corev1.PodPending)),
		podOf("rejected-or-evicted", phase(corev1.PodFailed)),
		podOf("finished", phase(corev1.PodSucceeded)),
		podOf("deleting", deleting),
		podOf("static", from("file")),
		podOf("static-by-url", from("http")),
	)
	n.start(t)
	n.watch(t)
	n.awaitManaged(t, "a", "pending")

	for _, step := range []struct {
		event *podsv1.WatchPodsEvent
		want  []checkpoint.UID
	}{
		{event(podsv1.EventType_ADDED, podOf("b")), []checkpoint.UID{"a", "b", "pending"}},
		{event(podsv1.EventType_MODIFIED, podOf("a", phase(corev1.PodFailed))), []checkpoint.UID{"b", "pending"}},
		{event(podsv1.EventType_MODIFIED, podOf("pending", deleting)), []checkpoint.UID{"b"}},
		{event(podsv1.EventType_ADDED, podOf("c")), []checkpoint.UID{"b", "c"}},
		{event(podsv1.EventType_DELETED, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}}), []checkpoint.UID{"c"}},
	} {
		n.kubelet.events <- step.event
		n.awaitManaged(t, step.want...)
	}
}

// TestEvictedIsTheKubeletsWord: the API server may be away when the kubelet evicts a pod.
func TestEvictedIsTheKubeletsWord(t *testing.T) {
	n := newNode(t, true)
	evict := reason("Evicted")
	n.kubelet.sync(podOf("a"), podOf("evicted", evict), podOf("rejected", reason("NodePorts")), podOf("static", evict, from("file")))
	n.start(t)
	n.watch(t)
	awaitEvicted := func(uids ...checkpoint.UID) {
		t.Helper()
		n.await(t, "synced, with these evicted", func(f PodsFacts) bool {
			return f.State == checkpoint.KubeletSynced && slices.Equal(slices.Sorted(maps.Keys(f.Evicted)), uids)
		})
	}
	awaitEvicted("evicted")
	n.awaitManaged(t, "a")
	n.kubelet.events <- event(podsv1.EventType_MODIFIED, podOf("a", evict, deleting))
	awaitEvicted("a", "evicted")
	n.awaitManaged(t)
	n.kubelet.events <- event(podsv1.EventType_DELETED, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "evicted"}})
	awaitEvicted("a")
	n.kubelet.cutOff()
	n.kubelet.restart()
	if facts := n.awaitState(t, checkpoint.KubeletUnsynced); facts.Evicted != nil {
		t.Errorf("unsynced, and yet evicted are %v", facts.Evicted)
	}
}

func TestEventsOfNoPodChangeNothing(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync(podOf("a"))
	n.start(t)
	n.watch(t)
	n.awaitManaged(t, "a")
	before := n.count()
	n.kubelet.events <- &podsv1.WatchPodsEvent{Type: 99}
	n.kubelet.events <- event(podsv1.EventType_MODIFIED, podOf("a"))
	n.kubelet.events <- event(podsv1.EventType_ADDED, podOf("b")) // comes after the others
	n.awaitManaged(t, "a", "b")
	if got := n.count() - before; got != 1 {
		t.Errorf("%d reports of one change", got)
	}
}

func TestBrokenStreamIsUnknownAtOnce(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync(podOf("a"))
	stop := n.start(t)
	n.watch(t)
	n.awaitManaged(t, "a")
	stop()
	if facts := n.awaitState(t, checkpoint.KubeletUnknown); facts.Managed != nil {
		t.Errorf("unknown, and yet managed is %v", facts.Managed)
	}
	n.kubelet.restart()
	n.start(t)
	n.awaitState(t, checkpoint.KubeletUnsynced)
}

func TestBeingCutOffIsFollowedByAFreshStart(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync(podOf("a"))
	n.start(t)
	n.watch(t)
	n.awaitManaged(t, "a")
	n.kubelet.sync(podOf("b")) // while it told us nothing
	n.kubelet.cutOff()
	n.awaitManaged(t, "b")
	all, _ := n.snapshot()
	if !slices.ContainsFunc(all, func(f PodsFacts) bool { return f.State == checkpoint.KubeletUnknown }) {
		t.Error("it was never unknown in between")
	}
}

func TestSocketThatReturnsIsAskedAtOnce(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync(podOf("a"))
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletUnknown)
	for range 3 {
		stop := n.start(t)
		n.awaitManaged(t, "a")
		stop()
		n.awaitState(t, checkpoint.KubeletUnknown)
	}
}

func TestKubeletWithoutPodsAPIIsAbsentAndLeftAlone(t *testing.T) {
	n := newNode(t, false)
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletAbsent)

	// An upgrade of the kubelet.
	n.kubelet.sync(podOf("a"))
	staged := filepath.Join(n.dir, "staged")
	must(t, os.Mkdir(staged, 0o750))
	serve(t, filepath.Join(staged, "pods-api.sock"), func(s grpc.ServiceRegistrar) { podsv1.RegisterPodsServer(s, n.kubelet) })
	must(t, os.Rename(staged, n.pods.directory)) // with the socket in it: no other event tells
	n.awaitManaged(t, "a")
	if got := n.log.count(t, "no socket that tells"); got != 1 {
		t.Errorf("%d log lines about one absence", got)
	}
}

func TestUnsyncedKubeletIsAskedSoonerWhileTheAPIServerServes(t *testing.T) {
	n := newNode(t, true)
	n.start(t)
	source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) }) // alone: nothing else kicks
	calls := func(count int) time.Duration {
		start := time.Now()
		for range count {
			receive(t, n.kubelet.asked, "question")
		}
		return time.Since(start)
	}
	calls(1)
	if took := calls(1); took < askLater/2 {
		t.Errorf("asked again after %v, while no API server serves", took)
	}
	n.pods.APIServing(true)
	calls(1) // at once
	if took := calls(4); took > 2*askLater {
		t.Errorf("four questions took %v while the API server serves", took)
	}
	n.pods.APIServing(true)
	n.pods.APIServing(false)
	calls(1) // was on its way
	if took := calls(1); took < askLater/2 {
		t.Errorf("asked again after %v, though the API server serves no more", took)
	}
	if got := n.log.messages(t); len(got) != 1 {
		t.Errorf("log %q, want one line: nothing changed", got)
	}
}

func TestKickAsksAtOnceAndNeverBlocks(t *testing.T) {
	n := newNode(t, true)
	for range 100 {
		n.pods.Kick() // nobody runs yet
	}
	n.start(t)
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletUnsynced)
	start := time.Now()
	for range 5 {
		receive(t, n.kubelet.asked, "question")
		n.pods.Kick()
	}
	if took := time.Since(start); took > askLater {
		t.Errorf("five kicks took %v", took)
	}
}

func TestKubeletThatDoesNotRunIsSaidOnce(t *testing.T) {
	n := newNode(t, true)
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletUnknown)
	for range 3 {
		n.pods.Kick()
	}
	stop := n.start(t)
	n.awaitState(t, checkpoint.KubeletUnsynced)
	stop()
	n.awaitState(t, checkpoint.KubeletUnknown)
	if got := n.log.count(t, "does not answer"); got != 2 {
		t.Errorf("said %d times, want once for each time: %q", got, n.log.messages(t))
	}
}
