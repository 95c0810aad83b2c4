package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// olderKubelet has podresources and no Pods API: it tells the names of the pods that it knows.
type olderKubelet struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	asked chan struct{} // a token for each question

	mu   sync.Mutex
	pods []string // all in kube-system
}

func (k *olderKubelet) List(context.Context, *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	k.asked <- struct{}{}
	k.mu.Lock()
	defer k.mu.Unlock()
	response := new(podresourcesv1.ListPodResourcesResponse)
	for _, name := range k.pods {
		response.PodResources = append(response.PodResources, &podresourcesv1.PodResources{Namespace: "kube-system", Name: name})
	}
	return response, nil
}

func (k *olderKubelet) know(pods ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = pods
}

func (k *olderKubelet) start(t *testing.T, n *node) (stop func()) {
	t.Helper()
	return serve(t, filepath.Join(n.dir, "pod-resources", "kubelet.sock"), func(s grpc.ServiceRegistrar) {
		podresourcesv1.RegisterPodResourcesListerServer(s, k)
	})
}

func newOlderNode(t *testing.T) (*node, *olderKubelet) {
	t.Helper()
	n := newNode(t, false)
	must(t, os.Mkdir(filepath.Join(n.dir, "pod-resources"), 0o750))
	return n, &olderKubelet{asked: make(chan struct{}, 1000)}
}

// runs is what the runtime says, each sandbox created a second before the one before.
func runs(sandboxes ...checkpoint.Sandbox) RuntimeFacts {
	for i := range sandboxes {
		sandboxes[i].Namespace, sandboxes[i].Created = "kube-system", time.Unix(int64(-i), 0)
	}
	return RuntimeFacts{State: checkpoint.RuntimeKnown, Sandboxes: sandboxes}
}

func TestOlderKubeletIsAskedByName(t *testing.T) {
	n, k := newOlderNode(t)
	k.know("a", "b", "static-node-1", "not-started")
	k.start(t, n)
	n.watch(t)
	receive(t, k.asked, "question")
	n.pods.SawPods([]*corev1.Pod{podOf("a2", ready)})
	receive(t, k.asked, "question after the first answer was taken in")
	n.pods.SawRuntime(runs(
		checkpoint.Sandbox{UID: "a2", Name: "a"}, checkpoint.Sandbox{UID: "a1", Name: "a"},
		checkpoint.Sandbox{UID: "b1", Name: "b"}, checkpoint.Sandbox{UID: "unknown", Name: "c"},
		checkpoint.Sandbox{UID: "hash", Name: "static-node-1", FromFile: true},
	))
	facts := n.awaitManaged(t, "a2", "b1")
	if !facts.Managed["a2"].Ready || facts.Managed["b1"].Ready {
		t.Errorf("managed %v, want only a2 ready", facts.Managed)
	}
	if n.count() != 1 {
		t.Errorf("%d reports, want one: before it is known what runs, names tell nothing", n.count())
	}

	k.know("b")
	n.pods.SawRuntime(runs(checkpoint.Sandbox{UID: "b1", Name: "b"}))
	n.awaitManaged(t, "b1")
	before := n.count()
	n.pods.SawRuntime(RuntimeFacts{State: checkpoint.RuntimeUnknown}) // is no news of what runs
	for len(k.asked) > 0 {
		<-k.asked
	}
	for range 3 { // so that an answer was taken in
		n.pods.Kick()
		receive(t, k.asked, "question")
	}
	k.know("b", "b-2")
	n.pods.SawRuntime(runs(checkpoint.Sandbox{UID: "b1", Name: "b"}, checkpoint.Sandbox{UID: "b2", Name: "b-2"}))
	n.awaitManaged(t, "b1", "b2")
	if got := n.count() - before; got != 1 {
		t.Errorf("%d reports of one change", got)
	}
}

func TestOlderKubeletIsNotAskedWithoutReason(t *testing.T) {
	n, k := newOlderNode(t)
	k.start(t, n)
	source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) })
	receive(t, k.asked, "question")
	n.pods.SawRuntime(runs())
	receive(t, k.asked, "question")
	n.awaitManaged(t)
	n.pods.APIServing(true) // which it is kicked for
	receive(t, k.asked, "question")
	select {
	case <-k.asked:
		t.Error("it was asked though nothing happened")
	case <-time.After(2 * askLater):
	}
}

func TestOlderKubeletThatRestarts(t *testing.T) {
	n, k := newOlderNode(t)
	k.know("a")
	n.watch(t)
	n.awaitState(t, checkpoint.KubeletUnknown)
	n.pods.SawRuntime(runs(checkpoint.Sandbox{UID: "a1", Name: "a"}))
	for range 3 {
		k.know("a")
		stop := k.start(t, n)
		n.awaitManaged(t, "a1")
		stop()
		n.awaitState(t, checkpoint.KubeletUnknown) // though nobody asked it anything
	}
	if got := n.log.count(t, "does not answer"); got != 4 {
		t.Errorf("said %d times that it does not answer, want once for each time: %q", got, n.log.messages(t))
	}
}

// TestOlderKubeletThatHasNotSeenTheAPIServer does not list what it has run before its restart, and nothing tells when it
// does: found with a kubelet 1.34.4.
func TestOlderKubeletThatHasNotSeenTheAPIServer(t *testing.T) {
	n, k := newOlderNode(t)
	k.start(t, n)
	source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) })
	n.pods.SawRuntime(runs(checkpoint.Sandbox{UID: "a1", Name: "a", Ready: true}, checkpoint.Sandbox{UID: "static", Name: "s", FromFile: true, Ready: true}))
	n.awaitManaged(t)
	k.know("a")
	n.awaitManaged(t, "a1")
	for len(k.asked) > 0 {
		<-k.asked
	}
	select {
	case <-k.asked:
		t.Error("it was asked though it lists all that runs")
	case <-time.After(time.Second):
	}
}

// TestUpgradeOfTheKubelet: the Pods API is better, and is taken as soon as it is there.
func TestUpgradeOfTheKubelet(t *testing.T) {
	n, k := newOlderNode(t)
	k.know("a")
	k.start(t, n)
	n.pods.SawRuntime(runs(checkpoint.Sandbox{UID: "a1", Name: "a"}))
	n.watch(t)
	n.awaitManaged(t, "a1")
	n.kubelet.sync(podOf("a1", ready), podOf("a2"))
	must(t, os.Mkdir(n.pods.directory, 0o750))
	n.start(t)
	n.awaitManaged(t, "a1", "a2")
}
