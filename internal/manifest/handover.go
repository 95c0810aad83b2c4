package manifest

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// HandoverOf says how a checkpoint makes room for its parent, of which both give the same answer.
func HandoverOf(pod *corev1.Pod) checkpoint.Handover {
	switch pod.Annotations[AnnotationHandover] {
	case handoverReady:
		return checkpoint.HandoverReady
	case handoverCreated:
		return checkpoint.HandoverCreated
	}
	if pod.Spec.HostNetwork || keepsHostPorts(pod) {
		return checkpoint.HandoverCreated
	}
	return checkpoint.HandoverReady
}

// handoverWord is HandoverOf as AnnotationHandover says it.
func handoverWord(pod *corev1.Pod) string {
	if HandoverOf(pod) == checkpoint.HandoverCreated {
		return handoverCreated
	}
	return handoverReady
}

// keepsHostPorts says whether the checkpoint of a pod with a network of its own will take ports of the node.
func keepsHostPorts(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Annotations[AnnotationKeepHostPorts] == "true" && len(hostPorts(pod)) > 0
}

// hostPorts lists the ports of the node that the pod says it takes, for AnnotationHostPorts. Containers that may run at
// the same time count: the regular ones and the sidecars, as in k8s.io/kubernetes/pkg/scheduler/util.GetHostPorts. With
// the host's network every port is one: k8s.io/kubernetes/pkg/apis/core/v1.defaultHostNetworkPorts.
func hostPorts(pod *corev1.Pod) []string {
	var ports []string
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			number := p.HostPort
			if number == 0 && pod.Spec.HostNetwork {
				number = p.ContainerPort
			}
			if number == 0 {
				continue
			}
			port := strconv.Itoa(int(number))
			if p.HostIP != "" && p.HostIP != "0.0.0.0" && p.HostIP != "::" {
				port = net.JoinHostPort(p.HostIP, port)
			}
			protocol := p.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			ports = append(ports, port+"/"+string(protocol))
		}
	}
	for i := range pod.Spec.InitContainers {
		if isSidecar(&pod.Spec.InitContainers[i]) {
			add(&pod.Spec.InitContainers[i])
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func hostPortList(pod *corev1.Pod) string { return strings.Join(hostPorts(pod), ",") }

// TakesHostPorts says whether a checkpoint takes ports of the node: all of them are free to a pod on the host's network.
func TakesHostPorts(pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork || pod.Annotations[AnnotationHostPorts] != ""
}
