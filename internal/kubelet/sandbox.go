package kubelet

import (
	"slices"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// sandboxOf is a sandbox without its containers. The kubelet copies all annotations of the pod to the sandbox, its own
// source among them (k8s.io/kubernetes/pkg/kubelet/kuberuntime.newPodAnnotations).
func sandboxOf(s *cri.PodSandbox) checkpoint.Sandbox {
	return checkpoint.Sandbox{
		ID:           s.Id,
		UID:          checkpoint.UID(s.GetMetadata().GetUid()),
		Namespace:    s.GetMetadata().GetNamespace(),
		Name:         s.GetMetadata().GetName(),
		CheckpointOf: s.Annotations[manifest.AnnotationCheckpointOf],
		FromFile:     s.Annotations["kubernetes.io/config.source"] == "file",
		Ready:        s.State == cri.PodSandboxState_SANDBOX_READY,
		Created:      time.Unix(0, s.CreatedAt),
	}
}

func stateOf(state cri.ContainerState) checkpoint.ContainerState {
	switch state {
	case cri.ContainerState_CONTAINER_CREATED:
		return checkpoint.ContainerCreated
	case cri.ContainerState_CONTAINER_RUNNING:
		return checkpoint.ContainerRunning
	case cri.ContainerState_CONTAINER_EXITED:
		return checkpoint.ContainerExited
	default:
		return checkpoint.ContainerUnknown
	}
}

func sameSandbox(a, b checkpoint.Sandbox) bool {
	return a.ID == b.ID && a.Ready == b.Ready && slices.Equal(a.Containers, b.Containers)
}

// touched collects the IDs of the sandboxes that events are about; an empty one stands for any. Its drain never waits for anybody: in containerd 2, a reader
// that falls behind holds up the starts of every container on the node
// (github.com/containerd/containerd/v2/internal/eventq.publish).
type touched struct {
	some chan struct{} // holds a token while there are any

	mu  sync.Mutex
	ids map[string]bool
}

func newTouched() *touched {
	return &touched{some: make(chan struct{}, 1), ids: make(map[string]bool)}
}

// drain reads the stream to its end, and returns why it ended.
func (t *touched) drain(stream cri.RuntimeService_GetContainerEventsClient) error {
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		id := event.GetPodSandboxStatus().GetId() // the runtime may send no status, as for what is gone
		t.mu.Lock()
		t.ids[id] = true
		t.mu.Unlock()
		select {
		case t.some <- struct{}{}:
		default:
		}
	}
}

func (t *touched) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := make([]string, 0, len(t.ids))
	for id := range t.ids {
		ids = append(ids, id)
	}
	clear(t.ids)
	return ids
}
