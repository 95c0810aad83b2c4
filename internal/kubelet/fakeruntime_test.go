package kubelet

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// eventQueue holds up who sends into it as long as a subscriber is slow, and keeps what nobody subscribed to for the
// first that does: as github.com/containerd/containerd/v2/internal/eventq.
type eventQueue struct {
	mu          sync.Mutex
	subscribers []chan *cri.ContainerEventResponse
	backlog     []*cri.ContainerEventResponse
}

func (q *eventQueue) send(e *cri.ContainerEventResponse) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.subscribers) == 0 {
		q.backlog = append(q.backlog, e)
	}
	for _, s := range q.subscribers {
		s <- e
	}
}

func (q *eventQueue) subscribe() chan *cri.ContainerEventResponse {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := make(chan *cri.ContainerEventResponse, 100+len(q.backlog))
	for _, e := range q.backlog {
		s <- e
	}
	q.backlog = nil
	q.subscribers = append(q.subscribers, s)
	return s
}

// unsubscribe frees a sender that waits for s.
func (q *eventQueue) unsubscribe(s chan *cri.ContainerEventResponse) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-s:
			case <-done:
				return
			}
		}
	}()
	q.mu.Lock()
	defer q.mu.Unlock()
	close(done)
	q.subscribers = slices.DeleteFunc(q.subscribers, func(other chan *cri.ContainerEventResponse) bool { return other == s })
}

// fakeRuntime is a CRI v1 runtime.
type fakeRuntime struct {
	cri.UnimplementedRuntimeServiceServer
	queue      eventQueue
	subscribed chan struct{} // a token for each subscription
	listed     chan struct{} // a token for each list of everything

	mu         sync.Mutex
	noEvents   bool // as CRI-O without enable_pod_events
	hang       bool // in lists and stops, until the caller gives up
	sandboxes  map[string]*cri.PodSandbox
	containers map[string]*cri.Container
	writes     []string // "remove CONTAINER", "stop SANDBOX"
}

func newFakeRuntime() *fakeRuntime {
	return &fakeRuntime{
		subscribed: make(chan struct{}, 1000), listed: make(chan struct{}, 100_000),
		sandboxes: make(map[string]*cri.PodSandbox), containers: make(map[string]*cri.Container),
	}
}

func (f *fakeRuntime) set(change func(*fakeRuntime)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeRuntime) hangs(ctx context.Context) error {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (f *fakeRuntime) GetContainerEvents(_ *cri.GetEventsRequest, stream grpc.ServerStreamingServer[cri.ContainerEventResponse]) error {
	f.mu.Lock()
	noEvents := f.noEvents
	f.mu.Unlock()
	if noEvents {
		return nil
	}
	events := f.queue.subscribe()
	defer f.queue.unsubscribe(events)
	f.subscribed <- struct{}{}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case e := <-events:
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

func (f *fakeRuntime) ListPodSandbox(ctx context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	if err := f.hangs(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := request.GetFilter().GetId()
	if id == "" {
		f.listed <- struct{}{}
	}
	response := new(cri.ListPodSandboxResponse)
	for _, s := range f.sandboxes {
		if id == "" || s.Id == id {
			response.Items = append(response.Items, s)
		}
	}
	return response, nil
}

func (f *fakeRuntime) ListContainers(ctx context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	if err := f.hangs(ctx); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := request.GetFilter().GetPodSandboxId()
	response := new(cri.ListContainersResponse)
	for _, c := range f.containers {
		if id == "" || c.PodSandboxId == id {
			response.Containers = append(response.Containers, c)
		}
	}
	rand.Shuffle(len(response.Containers), func(i, j int) {
		response.Containers[i], response.Containers[j] = response.Containers[j], response.Containers[i]
	})
	return response, nil
}

func (f *fakeRuntime) StopPodSandbox(ctx context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	if err := f.hangs(ctx); err != nil {
		return nil, err
	}
	f.set(func(f *fakeRuntime) {
		f.writes = append(f.writes, "stop "+request.PodSandboxId)
		f.stop(request.PodSandboxId)
	})
	f.notify(request.PodSandboxId, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return new(cri.StopPodSandboxResponse), nil
}

func (f *fakeRuntime) RemoveContainer(ctx context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	if err := f.hangs(ctx); err != nil {
		return nil, err
	}
	f.set(func(f *fakeRuntime) {
		f.writes = append(f.writes, "remove "+request.ContainerId)
		delete(f.containers, request.ContainerId)
	})
	return new(cri.RemoveContainerResponse), nil
}

// run makes a running pod of n containers, silently.
func (f *fakeRuntime) run(id string, n int, annotations map[string]string) {
	f.sandboxes[id] = &cri.PodSandbox{
		Id: id, State: cri.PodSandboxState_SANDBOX_READY, CreatedAt: int64(len(f.sandboxes) + 1),
		Metadata: &cri.PodSandboxMetadata{Namespace: "kube-system", Name: "pod-" + id, Uid: "uid-" + id}, Annotations: annotations,
	}
	for i := range n {
		c := fmt.Sprintf("%s-c%d", id, i)
		f.containers[c] = &cri.Container{
			Id: c, PodSandboxId: id, CreatedAt: int64(i), State: cri.ContainerState_CONTAINER_RUNNING,
			Metadata: &cri.ContainerMetadata{Name: fmt.Sprintf("c%d", i)},
		}
	}
}

// stop ends a pod, silently.
func (f *fakeRuntime) stop(id string) {
	f.sandboxes[id] = &cri.PodSandbox{Id: id, State: cri.PodSandboxState_SANDBOX_NOTREADY, Metadata: f.sandboxes[id].Metadata}
	maps.DeleteFunc(f.containers, func(_ string, c *cri.Container) bool { return c.PodSandboxId == id })
}

// notify sends an event of the size that one of a real pod has.
func (f *fakeRuntime) notify(id string, kind cri.ContainerEventType) {
	f.queue.send(&cri.ContainerEventResponse{ContainerId: id, ContainerEventType: kind, PodSandboxStatus: &cri.PodSandboxStatus{
		Id: id, Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 8<<10)},
	}})
}

// startPod does what the kubelet has a runtime do: it waits as long as the runtime is held up by its event queue.
func (f *fakeRuntime) startPod(id string) {
	f.set(func(f *fakeRuntime) { f.run(id, 1, nil) })
	for range 2 { // the sandbox, its container
		f.notify(id, cri.ContainerEventType_CONTAINER_CREATED_EVENT)
		f.notify(id, cri.ContainerEventType_CONTAINER_STARTED_EVENT)
	}
}

// start serves it on a socket in dir.
func (f *fakeRuntime) start(t *testing.T, dir string, options ...grpc.ServerOption) (stop func()) {
	t.Helper()
	return serve(t, filepath.Join(dir, "cri.sock"), func(s grpc.ServiceRegistrar) { cri.RegisterRuntimeServiceServer(s, f) }, options...)
}
