package manifest

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// encode is deterministic: encoding/json sorts the keys of maps. It leaves out the status, which the kubelet would hash
// into the pod's UID.
func encode(pod *corev1.Pod) ([]byte, error) {
	encoded, err := json.MarshalIndent(struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              corev1.PodSpec `json:"spec"`
	}{pod.TypeMeta, pod.ObjectMeta, pod.Spec}, "", "  ")
	return append(encoded, '\n'), err
}
