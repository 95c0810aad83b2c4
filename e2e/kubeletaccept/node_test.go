package kubeletaccept

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the kubelet of the node knows by itself: of the node the same that the generated pods' statuses say, and of a pod
// with a network of its own the address that this sandbox got.
var (
	allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	known = map[string]string{
		"status.hostIPfalse": "192.0.2.7", "status.hostIPsfalse": "192.0.2.7,2001:db8::7", "status.podIPfalse": "10.9.9.9", "status.podIPsfalse": "10.9.9.9",
		"status.hostIPtrue": "192.0.2.7", "status.hostIPstrue": "192.0.2.7,2001:db8::7", "status.podIPtrue": "192.0.2.7", "status.podIPstrue": "192.0.2.7",
	}
)
