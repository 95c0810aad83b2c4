package manifest

import (
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fieldEnv resolves a variable that names the parent: the kubelet would give it the checkpoint's name and UID. What the
// kubelet knows of the node by itself stays, and so does the address of a pod that has one of its own. The address of
// the node is resolved where it is known, because a kubelet with an external cloud provider learns it from the API
// server (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, podFieldSelectorRuntimeValue and getHostIPsAnyWay).
func (c *conversion) fieldEnv(v corev1.EnvVar) corev1.EnvVar {
	status := &c.parent.Status
	ownNetwork := !c.parent.Spec.HostNetwork
	var value string
	switch path := v.ValueFrom.FieldRef.FieldPath; path {
	case "metadata.name":
		value = c.parent.Name
	case "metadata.namespace":
		value = c.parent.Namespace
	case "metadata.uid":
		value = string(c.parent.UID)
	case "metadata.labels":
		value = formatMap(c.parent.Labels)
	case "metadata.annotations":
		value = formatMap(c.parent.Annotations)
	case "spec.serviceAccountName":
		value = c.parent.Spec.ServiceAccountName
	case "status.hostIP":
		if status.HostIP == "" {
			return v
		}
		value = status.HostIP
	case "status.hostIPs":
		if len(status.HostIPs) == 0 {
			return v
		}
		value = joinIPs(status.HostIPs, func(ip corev1.HostIP) string { return ip.IP })
	case "status.podIP":
		if ownNetwork || status.PodIP == "" {
			return v
		}
		value = status.PodIP
	case "status.podIPs":
		if ownNetwork || len(status.PodIPs) == 0 {
			return v
		}
		value = joinIPs(status.PodIPs, func(ip corev1.PodIP) string { return ip.IP })
	default:
		key, ok := subscript(path, "metadata.labels")
		if ok {
			value = c.parent.Labels[key]
		} else if key, ok = subscript(path, "metadata.annotations"); ok {
			value = c.parent.Annotations[key]
		} else {
			return v // spec.nodeName, and nothing else that the API server accepts
		}
	}
	return literal(v.Name, value)
}

// subscript is the key in a path like metadata.labels['key'] (k8s.io/kubernetes/pkg/fieldpath.SplitMaybeSubscriptedPath).
func subscript(path, field string) (string, bool) {
	rest, ok := strings.CutPrefix(path, field+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, "']")
}

// formatMap is k8s.io/kubernetes/pkg/fieldpath.FormatMap.
func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, key := range sortedKeys(m) {
		lines = append(lines, key+"="+strconv.Quote(m[key]))
	}
	return strings.Join(lines, "\n")
}

func joinIPs[T any](ips []T, text func(T) string) string {
	texts := make([]string, 0, len(ips))
	for ip := range slices.Values(ips) {
		texts = append(texts, text(ip))
	}
	return strings.Join(texts, ",")
}

// resourceEnv resolves a variable that holds a resource request, because the checkpoint has none. The formula is that of
// k8s.io/kubernetes/pkg/api/v1/resource.ExtractContainerResourceValue.
func (e *environment) resourceEnv(v corev1.EnvVar) corev1.EnvVar {
	ref := v.ValueFrom.ResourceFieldRef
	name, ok := strings.CutPrefix(ref.Resource, "requests.")
	if !ok {
		return v
	}
	container := e.container.Name
	if ref.ContainerName != "" {
		container = ref.ContainerName
	}
	var requests corev1.ResourceList
	for c := range containersOf(&e.parent.Spec) {
		if c.Name == container {
			requests = c.Resources.Requests
		}
	}
	request, divisor := requests[corev1.ResourceName(name)], ref.Divisor
	if divisor.IsZero() {
		divisor = *resource.NewQuantity(1, resource.DecimalSI)
	}
	quotient := float64(request.Value()) / float64(divisor.Value())
	if corev1.ResourceName(name) == corev1.ResourceCPU {
		quotient = float64(request.MilliValue()) / float64(divisor.MilliValue())
	}
	return corev1.EnvVar{Name: v.Name, Value: strconv.FormatInt(int64(math.Ceil(quotient)), 10)}
}
