package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// convertContainers converts the init containers, sidecars and regular containers.
func (c *conversion) convertContainers() {
	for i := range c.pod.Spec.InitContainers {
		c.convertContainer(&c.pod.Spec.InitContainers[i], "initContainers")
	}
	for i := range c.pod.Spec.Containers {
		c.convertContainer(&c.pod.Spec.Containers[i], "containers")
	}
}

func (c *conversion) convertContainer(container *corev1.Container, list string) {
	path := item("spec", list, container.Name)
	containerFields.apply(container, path, c.report)
	c.convertPorts(container, path)
	c.convertEnv(container, path)
	c.convertResources(&container.Resources, path+".resources")
	container.ImagePullPolicy = pullPolicy(container.ImagePullPolicy)
	for i := range container.VolumeMounts {
		mount := &container.VolumeMounts[i]
		volumeMountFields.apply(mount, item(path, "volumeMounts", mount.MountPath), c.report)
		if c.readOnly[mount.Name] {
			mount.ReadOnly = true
		}
	}
}

// pullPolicy makes the kubelet content with an image that it has. Left empty it may become Always
// (k8s.io/kubernetes/pkg/apis/core/v1.SetDefaults_Container).
func pullPolicy(policy corev1.PullPolicy) corev1.PullPolicy {
	if policy == corev1.PullNever {
		return policy
	}
	return corev1.PullIfNotPresent
}

// convertPorts takes away what the kubelet would reserve on the node. On the host's network each container port becomes
// a host port by default (k8s.io/kubernetes/pkg/apis/core/v1.defaultHostNetworkPorts), whatever the manifest says, and
// the kubelet rejects a returning parent for good whose host ports are taken.
func (c *conversion) convertPorts(container *corev1.Container, path string) {
	if c.pod.Spec.HostNetwork {
		numberPorts(container)
		container.Ports = nil
		return
	}
	if keepsHostPorts(c.parent) {
		return
	}
	for i := range container.Ports {
		port := &container.Ports[i]
		if port.HostPort != 0 {
			c.warn(path+".ports", "the checkpoint does not listen on the node's port "+strconv.Itoa(int(port.HostPort)),
				"to keep host ports, at the price of a gap when the pod returns, set the annotation "+AnnotationKeepHostPorts+`: "true"`)
		}
		port.HostPort, port.HostIP = 0, ""
	}
}

// numberPorts replaces the names of the container's ports, wherever the kubelet looks one up (its probes,
// k8s.io/kubernetes/pkg/probe.ResolveContainerPort, and its lifecycle hooks, pkg/kubelet/lifecycle/handlers.go). A name
// that no port has stays as wrong as it is.
func numberPorts(container *corev1.Container) {
	number := func(port *intstr.IntOrString) {
		for _, p := range container.Ports {
			if port.Type == intstr.String && p.Name == port.StrVal {
				*port = intstr.FromInt32(p.ContainerPort)
			}
		}
	}
	inProbe := func(probe *corev1.Probe) {
		if probe != nil && probe.HTTPGet != nil {
			number(&probe.HTTPGet.Port)
		}
		if probe != nil && probe.TCPSocket != nil {
			number(&probe.TCPSocket.Port)
		}
	}
	inHook := func(hook *corev1.LifecycleHandler) {
		if hook != nil && hook.HTTPGet != nil {
			number(&hook.HTTPGet.Port)
		}
		if hook != nil && hook.TCPSocket != nil {
			number(&hook.TCPSocket.Port)
		}
	}
	inProbe(container.LivenessProbe)
	inProbe(container.ReadinessProbe)
	inProbe(container.StartupProbe)
	if container.Lifecycle != nil {
		inHook(container.Lifecycle.PostStart)
		inHook(container.Lifecycle.PreStop)
	}
}

func zeroOf(name corev1.ResourceName) *resource.Quantity {
	if name == corev1.ResourceCPU {
		return resource.NewMilliQuantity(0, resource.DecimalSI)
	}
	return resource.NewQuantity(0, resource.BinarySI)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
