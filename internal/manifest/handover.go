package manifest

import (
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// HandoverOf says how a checkpoint makes room for its parent. Of both it gives the same answer.
func HandoverOf(pod *corev1.Pod) checkpoint.Handover {
	switch handoverWord(pod) {
	case handoverExclusive:
		return checkpoint.HandoverExclusive
	case handoverCreated:
		return checkpoint.HandoverCreated
	}
	if TakesHostPorts(pod) || keepsHostPorts(pod) {
		return checkpoint.HandoverShared
	}
	return checkpoint.HandoverReady
}

// handoverWord is what AnnotationHandover says, and of a parent that does not say: exclusive if it has data that two
// must not write at once, created if it takes ports of the node, else ready.
func handoverWord(pod *corev1.Pod) string {
	word := pod.Annotations[AnnotationHandover]
	switch {
	case slices.Contains([]string{handoverReady, handoverCreated, handoverExclusive}, word):
		return word
	case hasExclusiveData(pod):
		return handoverExclusive
	case pod.Spec.HostNetwork || keepsHostPorts(pod):
		return handoverCreated
	default:
		return handoverReady
	}
}

// hasExclusiveData says whether the pod is one of a StatefulSet or writes to a claim. A plain hostPath does not count:
// node agents share those with their successors in every rolling update.
func hasExclusiveData(pod *corev1.Pod) bool {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "StatefulSet" {
		return true
	}
	used := usedVolumes(&pod.Spec)
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && !v.PersistentVolumeClaim.ReadOnly && used[v.Name]
	})
}

// TakesHostPorts says whether a checkpoint takes ports of the node: all of them are free to a pod on the host's network.
func TakesHostPorts(pod *corev1.Pod) bool {
	return pod.Spec.HostNetwork || pod.Annotations[AnnotationHostPorts] != ""
}

// HostPorts lists the ports of the node that a parent or its checkpoint says it takes.
func HostPorts(pod *corev1.Pod) (ports []checkpoint.Port) {
	list := hostPorts(pod)
	if pod.Annotations[AnnotationCheckpointOf] != "" {
		list = strings.FieldsFunc(pod.Annotations[AnnotationHostPorts], func(r rune) bool { return r == ',' })
	}
	for _, port := range list {
		ports = append(ports, checkpoint.Port(port))
	}
	return ports
}

// keepsHostPorts says whether the checkpoint of a pod with a network of its own will take ports of the node.
func keepsHostPorts(pod *corev1.Pod) bool {
	return !pod.Spec.HostNetwork && pod.Annotations[AnnotationKeepHostPorts] == "true" && len(hostPorts(pod)) > 0
}

// hostPorts lists the ports of the node that the pod says it takes, for AnnotationHostPorts: those of the regular
// containers and the sidecars, as in k8s.io/kubernetes/pkg/scheduler/util.GetHostPorts.
func hostPorts(pod *corev1.Pod) []string {
	var ports []string
	for container := range containersOf(&pod.Spec) {
		initial := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container.Name })
		if initial && !isSidecar(container) {
			continue
		}
		for _, port := range container.Ports {
			if text := hostPort(port, pod.Spec.HostNetwork); text != "" {
				ports = append(ports, text)
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// hostPort is one port of the node, or empty. On the host's network every port is one, whether it says so or not
// (k8s.io/kubernetes/pkg/apis/core/v1.defaultHostNetworkPorts).
func hostPort(port corev1.ContainerPort, hostNetwork bool) string {
	number := port.HostPort
	if number == 0 && hostNetwork {
		number = port.ContainerPort
	}
	if number == 0 {
		return ""
	}
	text := strconv.Itoa(int(number))
	if ip := port.HostIP; ip != "" && ip != "0.0.0.0" && ip != "::" {
		text = net.JoinHostPort(ip, text)
	}
	if port.Protocol == "" {
		port.Protocol = corev1.ProtocolTCP
	}
	return text + "/" + string(port.Protocol)
}

func hostPortList(pod *corev1.Pod) string { return strings.Join(hostPorts(pod), ",") }
