package kubelet

import (
	"cmp"
	"slices"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// join makes sandboxes, by ID, of what the runtime lists of them and of their containers. A sandbox's containers are in
// the order of their creation; the runtime lists them in any, and each time in another.
func join(sandboxes []*cri.PodSandbox, containers []*cri.Container) map[string]checkpoint.Sandbox {
	found := make(map[string]checkpoint.Sandbox, len(sandboxes))
	for _, s := range sandboxes {
		found[s.Id] = sandboxOf(s)
	}
	slices.SortFunc(containers, func(a, b *cri.Container) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.Id, b.Id))
	})
	for _, c := range containers {
		if s, ok := found[c.PodSandboxId]; ok {
			s.Containers = append(s.Containers, checkpoint.Container{Name: c.GetMetadata().GetName(), State: stateOf(c.State)})
			found[c.PodSandboxId] = s
		}
	}
	return found
}

// sandboxOf is a sandbox without its containers. The kubelet copies all annotations of the pod to the sandbox, its own
// source among them (k8s.io/kubernetes/pkg/kubelet/kuberuntime.newPodAnnotations).
func sandboxOf(s *cri.PodSandbox) checkpoint.Sandbox {
	sandbox := checkpoint.Sandbox{
		ID:        s.Id,
		UID:       checkpoint.UID(s.GetMetadata().GetUid()),
		Namespace: s.GetMetadata().GetNamespace(),
		Name:      s.GetMetadata().GetName(),
		FromFile:  s.Annotations[sourceAnnotation] == "file",
		Ready:     s.State == cri.PodSandboxState_SANDBOX_READY,
		Created:   time.Unix(0, s.CreatedAt),
	}
	if sandbox.FromFile { // whoever may create a pod may write any annotation but the source, which the kubelet overwrites
		sandbox.CheckpointOf = s.Annotations[manifest.AnnotationCheckpointOf]
	}
	return sandbox
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
