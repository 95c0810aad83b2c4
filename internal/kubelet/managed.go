package kubelet

import (
	corev1 "k8s.io/api/core/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// sourceAnnotation is where the kubelet notes from where it has a pod, on the pod and on its sandbox: "api", "file" or
// "http" (k8s.io/kubernetes/pkg/kubelet/types.ConfigSourceAnnotationKey).
const sourceAnnotation = "kubernetes.io/config.source"

// fold takes one event into the set of managed pods. A fresh stream lists pods that were rejected, evicted or have
// finished, too: being listed is not being managed.
func fold(managed map[checkpoint.UID]checkpoint.Managed, event *podsv1.WatchPodsEvent) error {
	var pod corev1.Pod
	if err := pod.Unmarshal(event.Pod); err != nil {
		return err
	}
	uid := checkpoint.UID(pod.UID)
	switch event.Type {
	case podsv1.EventType_ADDED, podsv1.EventType_MODIFIED:
		if manages(&pod) {
			managed[uid] = checkpoint.Managed{Ready: isReady(&pod)}
			return nil
		}
		delete(managed, uid)
	case podsv1.EventType_DELETED: // of the pod, only its name and UID are there
		delete(managed, uid)
	}
	return nil
}

// manages says whether the kubelet runs the pod, for the API server.
func manages(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	source, known := pod.Annotations[sourceAnnotation]
	return !ended && pod.DeletionTimestamp == nil && (!known || source == "api")
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
