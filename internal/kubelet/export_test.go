package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// FakeKubelet is the fake for tests that import what imports this package.
type FakeKubelet struct {
	t    *testing.T
	dir  string
	fake *fakeKubelet
	stop func()
}

// NewFakeKubelet runs one that has seen the API server.
func NewFakeKubelet(t *testing.T) *FakeKubelet {
	t.Helper()
	k := &FakeKubelet{t: t, dir: shortDir(t), fake: newFakeKubelet()}
	must(t, os.Mkdir(filepath.Join(k.dir, "pods-api"), 0o750))
	k.fake.sync()
	must(t, k.Start(t.Context()))
	return k
}

func (k *FakeKubelet) Dir() string { return k.dir }

func (k *FakeKubelet) Tell(ctx context.Context, _ *Pods) { <-ctx.Done() } // it tells all by itself

func (k *FakeKubelet) Start(context.Context) error {
	k.stop = serve(k.t, filepath.Join(k.dir, "pods-api", "pods-api.sock"), func(s grpc.ServiceRegistrar) { podsv1.RegisterPodsServer(s, k.fake) })
	return nil
}

func (k *FakeKubelet) Kill(context.Context) error {
	k.stop()
	return nil
}

func (k *FakeKubelet) CreatePod(_ context.Context, name string) (checkpoint.UID, error) {
	k.fake.sync(podOf(name, ready))
	k.fake.events <- event(podsv1.EventType_ADDED, podOf(name))
	k.fake.events <- event(podsv1.EventType_MODIFIED, podOf(name, ready))
	return checkpoint.UID(name), nil
}

func (k *FakeKubelet) DeletePod(_ context.Context, name string) error {
	k.fake.sync()
	k.fake.events <- event(podsv1.EventType_DELETED, &corev1.Pod{ObjectMeta: podOf(name).ObjectMeta})
	return nil
}

// FakeOlderKubelet is the fake of one without the Pods API, for tests that import what imports this package.
type FakeOlderKubelet struct {
	t    *testing.T
	node *node
	fake *olderKubelet
	stop func()
	mu   sync.Mutex
	told *Pods
}

func NewFakeOlderKubelet(t *testing.T) *FakeOlderKubelet {
	t.Helper()
	node, fake := newOlderNode(t)
	k := &FakeOlderKubelet{t: t, node: node, fake: fake}
	must(t, k.Start(t.Context()))
	return k
}

func (k *FakeOlderKubelet) Dir() string { return k.node.dir }

func (k *FakeOlderKubelet) Start(context.Context) error {
	k.stop = k.fake.start(k.t, k.node)
	return nil
}

func (k *FakeOlderKubelet) Kill(context.Context) error {
	k.stop()
	return nil
}

func (k *FakeOlderKubelet) Tell(ctx context.Context, pods *Pods) {
	pods.SawRuntime(runs())
	pods.SawPods(nil)
	k.mu.Lock()
	k.told = pods
	k.mu.Unlock()
	<-ctx.Done()
}

func (k *FakeOlderKubelet) CreatePod(_ context.Context, name string) (checkpoint.UID, error) {
	uid := checkpoint.UID("uid-of-" + name)
	k.fake.know(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told.SawRuntime(runs(checkpoint.Sandbox{UID: uid, Name: name}))
	k.told.SawPods([]*corev1.Pod{podOf(string(uid), ready)})
	return uid, nil
}

func (k *FakeOlderKubelet) DeletePod(context.Context, string) error {
	k.fake.know()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told.SawRuntime(runs())
	k.told.SawPods(nil)
	return nil
}

// FakeRuntime is the fake for tests that import what imports this package.
type FakeRuntime struct {
	t    *testing.T
	dir  string
	fake *fakeRuntime
	stop func()
}

func NewFakeRuntime(t *testing.T) *FakeRuntime {
	t.Helper()
	r := &FakeRuntime{t: t, dir: shortDir(t), fake: newFakeRuntime()}
	must(t, r.Start(t.Context()))
	return r
}

func (r *FakeRuntime) Endpoint() string { return "unix://" + filepath.Join(r.dir, "cri.sock") }

func (r *FakeRuntime) Start(context.Context) error {
	r.stop = r.fake.start(r.t, r.dir)
	return nil
}

func (r *FakeRuntime) Kill(context.Context) error {
	r.stop()
	return nil
}

func (r *FakeRuntime) CreatePod(_ context.Context, name string) (checkpoint.UID, error) {
	r.fake.startPod(name)
	return checkpoint.UID("uid-" + name), nil
}

func (r *FakeRuntime) DeletePod(_ context.Context, name string) error {
	r.fake.set(func(f *fakeRuntime) { f.stop(name); delete(f.sandboxes, name) })
	r.fake.queue.send(&cri.ContainerEventResponse{ContainerId: name, ContainerEventType: cri.ContainerEventType_CONTAINER_DELETED_EVENT})
	return nil
}
