package manifest

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// controllerLabels tell a controller's pods apart. Kept, they would make tools count the checkpoint among them.
var controllerLabels = []string{"controller-revision-hash", "pod-template-generation", "pod-template-hash"}

// sandboxAnnotations are what a network plugin notes about the one sandbox that it set up. On another they are wrong,
// and an address in them may be claimed twice.
var sandboxAnnotations = []string{
	"cni.projectcalico.org/containerID", "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs",
	"k8s.ovn.org/pod-networks", "ovn.kubernetes.io/allocated",
	"k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status",
}

func (c *conversion) convertMeta() {
	meta := &c.pod.ObjectMeta
	objectMetaFields.apply(meta, "metadata", c.report)
	for _, label := range controllerLabels {
		delete(meta.Labels, label)
	}
	if meta.Annotations == nil {
		meta.Annotations = make(map[string]string)
	}
	maps.DeleteFunc(meta.Annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, Prefix) || strings.HasPrefix(key, "kubernetes.io/config.") || key == corev1.LastAppliedConfigAnnotation
	})
	for _, annotation := range sandboxAnnotations {
		delete(meta.Annotations, annotation)
	}
	maps.Copy(meta.Annotations, map[string]string{
		AnnotationCheckpointOf: c.parent.Name,
		AnnotationParentUID:    string(c.parent.UID),
		AnnotationLineage:      string(LineageOf(c.parent)),
		AnnotationHandover:     handoverWord(c.parent),
		AnnotationFormat:       Format,
	})
	if ports := hostPortList(c.parent); c.parent.Spec.HostNetwork && ports != "" || keepsHostPorts(c.parent) {
		meta.Annotations[AnnotationHostPorts] = ports
	}
}
