package manifest

import (
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// IsParent says whether a pod from the API server asks to be checkpointed, and is not one of a kind that never is: a
// static pod, which the kubelet starts without our help, the mirror of one, or a checkpoint's. That a pod asks does not
// mean that it can be: what Convert refuses is reported, what this turns away is not.
func IsParent(pod *corev1.Pod) bool {
	return pod.Annotations[AnnotationCheckpoint] == "true" && !isStatic(pod) && !isCheckpoint(pod)
}

// isStatic covers the mirror of a static pod and the static pod itself, as the kubelet shows it.
func isStatic(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[annotationMirror]
	source, known := pod.Annotations[annotationSource]
	return mirror || known && source != sourceAPI
}

func isCheckpoint(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[AnnotationCheckpointOf]
	return ok
}

// LineageOf names what succeeds itself on this node:
//
//	kube-system/DaemonSet/proxy  the pods of the DaemonSet proxy
//	default/ReplicaSet/web       the pods of the Deployment web: its ReplicaSets' names without the hash of the template
//	default/Pod/vector-0         every other pod
//
// It goes by names and not by UIDs, so that a workload that is deleted and made again succeeds itself. Were it another one,
// its pods would contend with the checkpoint that had to do their work meanwhile.
func LineageOf(pod *corev1.Pod) checkpoint.Lineage {
	kind, name := "Pod", pod.Name
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		switch owner.Kind {
		case "DaemonSet":
			kind, name = owner.Kind, owner.Name
		case "ReplicaSet":
			kind, name = owner.Kind, withoutHash(pod, owner)
		}
	}
	return checkpoint.Lineage(pod.Namespace + "/" + kind + "/" + name)
}

// withoutHash is the part of a ReplicaSet's name that all ReplicaSets of one Deployment share: the name of the
// Deployment (k8s.io/kubernetes/pkg/controller/deployment/sync.go, getNewReplicaSet).
func withoutHash(pod *corev1.Pod, replicaSet *metav1.OwnerReference) string {
	if hash := pod.Labels["pod-template-hash"]; hash != "" {
		if name, ok := strings.CutSuffix(replicaSet.Name, "-"+hash); ok {
			return name
		}
	}
	return replicaSet.Name
}

// Running lists the containers that must run for the pod to be up: the regular ones and the sidecars, but not those
// that may end in peace because they have a restart policy of their own.
func Running(pod *corev1.Pod) []string {
	var names []string
	for _, c := range pod.Spec.InitContainers {
		if isSidecar(&c) {
			names = append(names, c.Name)
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.RestartPolicy == nil || *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// isSidecar is k8s.io/kubernetes/pkg/api/v1/pod.IsRestartableInitContainer.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containersOf yields the init containers and the regular containers.
func containersOf(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}
