package kubeletaccept

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// allocatable is what the kubelet takes for a limit that is not set.
var allocatable = corev1.ResourceList{
	corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
}

// address is what the kubelet says to status.hostIP and the like: the node's addresses are those that the parent's status
// names, and a pod with a network of its own has the address that this sandbox got.
func address(path string, parent *corev1.Pod) string {
	node := cmp.Or(parent.Status.HostIP, "192.0.2.7")
	nodes := []string{node}
	for _, ip := range parent.Status.HostIPs {
		if ip.IP != node {
			nodes = append(nodes, ip.IP)
		}
	}
	own := "10.9.9.9"
	if parent.Spec.HostNetwork {
		own = node
	}
	return map[string]string{"status.hostIP": node, "status.hostIPs": strings.Join(nodes, ","), "status.podIP": own, "status.podIPs": own}[path]
}
