package kubelet

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// sourceAnnotation is where the kubelet notes from where it has a pod, on the pod and on its sandbox: "api", "file" or
// "http" (k8s.io/kubernetes/pkg/kubelet/types.ConfigSourceAnnotationKey).
const sourceAnnotation = "kubernetes.io/config.source"

// evicted is the reason in the status of a pod that the kubelet evicted (k8s.io/kubernetes/pkg/kubelet/eviction.Reason).
const evicted = "Evicted"

// Limits of what a kubelet may have: far above what any has, so that one which is out of its mind takes no more memory
// than that.
const (
	maxPods = 10_000
	maxUID  = 256 // bytes
)

var errTooMuch = errors.New("the kubelet tells more than it can know")

// known is what the kubelet's events add up to.
type known struct {
	managed map[checkpoint.UID]checkpoint.Managed
	evicted map[checkpoint.UID]bool
}

func newKnown() known {
	return known{managed: make(map[checkpoint.UID]checkpoint.Managed), evicted: make(map[checkpoint.UID]bool)}
}

// fold takes in one event. A fresh stream lists pods that were rejected, evicted or have finished, too: being listed is
// not being managed.
func (k known) fold(event *podsv1.WatchPodsEvent) error {
	var pod corev1.Pod
	switch event.Type {
	case podsv1.EventType_ADDED, podsv1.EventType_MODIFIED, podsv1.EventType_DELETED: // of the last, only name and UID are there
	default:
		return nil
	}
	if err := pod.Unmarshal(event.Pod); err != nil {
		return err
	}
	if len(pod.UID) > maxUID || len(k.managed)+len(k.evicted) > maxPods {
		return errTooMuch
	}
	uid := checkpoint.UID(pod.UID)
	delete(k.managed, uid)
	delete(k.evicted, uid)
	if event.Type == podsv1.EventType_DELETED || !isFromAPI(&pod) {
		return nil
	}
	if manages(&pod) {
		k.managed[uid] = checkpoint.Managed{Ready: isReady(&pod)}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == evicted {
		k.evicted[uid] = true
	}
	return nil
}

// facts are these, as they are now.
func (k known) facts() PodsFacts {
	return PodsFacts{State: checkpoint.KubeletSynced, Managed: maps.Clone(k.managed), Evicted: maps.Clone(k.evicted), Detail: "synced"}
}

// isFromAPI says whether the kubelet has the pod from the API server.
func isFromAPI(pod *corev1.Pod) bool {
	source, told := pod.Annotations[sourceAnnotation]
	return !told || source == "api"
}

// manages says whether the kubelet runs a pod of the API server.
func manages(pod *corev1.Pod) bool {
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return !ended && pod.DeletionTimestamp == nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
