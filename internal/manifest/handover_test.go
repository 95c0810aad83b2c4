package manifest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestHandoverAndHostPorts(t *testing.T) {
	port := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}, {ContainerPort: 53, HostPort: 53, HostIP: "::1", Protocol: "UDP"}}
	}
	keep := func(pod *corev1.Pod) { pod.Annotations[AnnotationKeepHostPorts] = "true" }
	hostNetwork := func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }
	claim := func(readOnly bool) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: readOnly}}}}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
		}
	}
	says := func(word string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[AnnotationHandover] = word }
	}
	statefulSet := func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "p", Controller: new(true)}}
	}
	const (
		ready, shared      = checkpoint.HandoverReady, checkpoint.HandoverShared
		created, exclusive = checkpoint.HandoverCreated, checkpoint.HandoverExclusive
	)
	for name, test := range map[string]struct {
		changes   []func(*corev1.Pod)
		handover  checkpoint.Handover
		takes     bool
		hostPorts string
	}{
		"plain":                      {nil, ready, false, ""},
		"host ports, not kept":       {[]func(*corev1.Pod){port}, ready, false, ""},
		"host ports, kept":           {[]func(*corev1.Pod){port, keep}, created, true, "80/TCP,[::1]:53/UDP"},
		"none to keep":               {[]func(*corev1.Pod){keep}, ready, false, ""},
		"host network":               {[]func(*corev1.Pod){hostNetwork}, created, true, ""},
		"host network with ports":    {[]func(*corev1.Pod){hostNetwork, port}, created, true, "80/TCP,[::1]:53/UDP"},
		"shares its port":            {[]func(*corev1.Pod){hostNetwork, port, says("ready")}, shared, true, "80/TCP,[::1]:53/UDP"},
		"shares its kept port":       {[]func(*corev1.Pod){port, keep, says("ready")}, shared, true, "80/TCP,[::1]:53/UDP"},
		"stateful set":               {[]func(*corev1.Pod){statefulSet}, exclusive, false, ""},
		"stateful set, host network": {[]func(*corev1.Pod){statefulSet, hostNetwork}, exclusive, true, ""},
		"claim":                      {[]func(*corev1.Pod){claim(false)}, exclusive, false, ""},
		"claim, only read":           {[]func(*corev1.Pod){claim(true)}, ready, false, ""},
		"asked for":                  {[]func(*corev1.Pod){says("exclusive")}, exclusive, false, ""},
		"a word that means nothing":  {[]func(*corev1.Pod){says("soon")}, ready, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(func(pod *corev1.Pod) { pod.Annotations = make(map[string]string) })
			for _, change := range test.changes {
				change(pod)
			}
			result, err := Convert(pod, boundClaim(), testOptions)
			if err != nil {
				t.Fatal(err)
			}
			if got := HandoverOf(pod); got != test.handover {
				t.Errorf("of the parent: %v", got)
			}
			if got := HandoverOf(result.Pod); got != test.handover {
				t.Errorf("of the checkpoint: %v", got)
			}
			if got := TakesHostPorts(result.Pod); got != test.takes {
				t.Errorf("takes host ports: %v", got)
			}
			if got := result.Pod.Annotations[AnnotationHostPorts]; got != test.hostPorts {
				t.Errorf("host ports are %q", got)
			}
		})
	}
}

// boundClaim is the claim c, bound to a directory.
func boundClaim() References {
	return References{
		PVCs: map[string]*corev1.PersistentVolumeClaim{"c": {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}},
		PVs: map[string]*corev1.PersistentVolume{"pv": {Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt"}},
		}}},
	}
}
