package generate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

func (g *generator) metadata() {
	meta := &g.pod.ObjectMeta
	meta.Name = pick(g, "web", "with.dots", strings.Repeat("long", 16), "a") + pick(g, "", "-x7k2p", "-0")
	meta.Namespace = pick(g, "default", "kube-system", "a-b")
	meta.UID = types.UID(g.name("uid"))
	meta.Labels = g.stringMap("app", "k8s-app", "controller-revision-hash", "pod-template-hash", "pod-template-generation", "example.com/label")
	meta.Annotations = g.stringMap("note", "kubectl.kubernetes.io/last-applied-configuration", "k8s.v1.cni.cncf.io/networks", "cni.projectcalico.org/podIP")
	if g.chance(0.5) {
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: pick(g, "DaemonSet", "ReplicaSet", "StatefulSet"), Name: "owner", UID: "owner", Controller: new(g.chance(0.9)),
		}}
	}
	g.annotate(0.9, manifest.AnnotationCheckpoint, "true")
	g.annotate(0.1, manifest.AnnotationKeepRequests, "true")
	g.annotate(0.2, manifest.AnnotationKeepHostPorts, "true")
	g.annotate(0.1, manifest.AnnotationSecretEnv, "inline")
	g.annotate(0.1, manifest.AnnotationHandover, pick(g, "ready", "exclusive"))
}

func (g *generator) annotate(p float64, key, value string) {
	if g.chance(p) {
		if g.pod.Annotations == nil {
			g.pod.Annotations = make(map[string]string)
		}
		g.pod.Annotations[key] = value
	}
}

func (g *generator) stringMap(keys ...string) map[string]string {
	values := make(map[string]string)
	for _, key := range keys {
		if g.chance(0.4) {
			values[key] = pick(g, "", "true", "a-b.c")
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

// afterCreation adds what a pod can't be created with: what the scheduler, the kubelet and people add later.
func (g *generator) afterCreation() {
	pod := g.pod
	pod.Spec.NodeName = NodeName
	pod.ResourceVersion, pod.Generation = "812", 1
	pod.Finalizers = several(g, 1, func() string { return "example.com/finalizer" })
	pod.ManagedFields = several(g, 1, func() metav1.ManagedFieldsEntry { return metav1.ManagedFieldsEntry{Manager: "kubelet"} })
	if g.chance(0.8) {
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "192.0.2.8", HostIPs: []corev1.HostIP{{IP: "192.0.2.8"}, {IP: "2001:db8::8"}}}
		pod.Status.PodIP, pod.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
		if pod.Spec.HostNetwork {
			pod.Status.PodIP, pod.Status.PodIPs = "192.0.2.8", []corev1.PodIP{{IP: "192.0.2.8"}}
		}
	}
	if g.chance(0.1) {
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debugger", Image: "busybox", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullAlways,
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}}}},
		}}}
	}
}
