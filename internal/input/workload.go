package input

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a controller makes up. It has the length of the real thing, and a reader sees that it is none.
const (
	anyHash   = "xxxxxxxxxx"
	anySuffix = "xxxxx"
)

// makerOf knows the kinds that are pods or make pods: an object to decode one into, the path of the pod's spec in it,
// and what makes the pod then. A template may come without its kind.
func makerOf(kind string) (object any, spec string, pod func() *corev1.Pod) {
	switch kind {
	case "v1/Pod":
		o := new(corev1.Pod)
		return o, "spec", func() *corev1.Pod { return o }
	case "/":
		o := new(corev1.PodTemplateSpec)
		return o, "spec", func() *corev1.Pod { return fromTemplate(o, cmp.Or(o.Name, "pod"), o.Namespace) }
	case "v1/PodTemplate":
		o := new(corev1.PodTemplate)
		return o, "template.spec", func() *corev1.Pod { return fromTemplate(&o.Template, o.Name, o.Namespace) }
	case "apps/v1/DaemonSet":
		o := new(appsv1.DaemonSet)
		return o, "spec.template.spec", func() *corev1.Pod { return fromDaemonSet(o) }
	case "apps/v1/Deployment":
		o := new(appsv1.Deployment)
		return o, "spec.template.spec", func() *corev1.Pod { return fromDeployment(o) }
	case "apps/v1/ReplicaSet":
		o := new(appsv1.ReplicaSet)
		return o, "spec.template.spec", func() *corev1.Pod { return fromReplicaSet(o, &o.Spec.Template) }
	case "apps/v1/StatefulSet":
		o := new(appsv1.StatefulSet)
		return o, "spec.template.spec", func() *corev1.Pod { return fromStatefulSet(o) }
	default:
		return nil, "", nil
	}
}

// fromTemplate is k8s.io/kubernetes/pkg/controller.GetPodFromTemplate, but for the name.
func fromTemplate(template *corev1.PodTemplateSpec, name, namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: template.Labels, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

func controlledBy(pod *corev1.Pod, kind string, owner *metav1.ObjectMeta) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.Name, UID: owner.UID, Controller: new(true)}}
	return pod
}

// fromDaemonSet adds the tolerations of k8s.io/kubernetes/pkg/controller/daemon/util.AddOrUpdateDaemonPodTolerations.
func fromDaemonSet(set *appsv1.DaemonSet) *corev1.Pod {
	pod := fromTemplate(&set.Spec.Template, set.Name+"-"+anySuffix, set.Namespace)
	tolerate := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	tolerate(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	tolerate(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	if pod.Spec.HostNetwork {
		tolerate(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return controlledBy(pod, "DaemonSet", &set.ObjectMeta)
}

func fromDeployment(deployment *appsv1.Deployment) *corev1.Pod {
	set := &appsv1.ReplicaSet{ObjectMeta: *deployment.ObjectMeta.DeepCopy()}
	set.Name, set.UID = deployment.Name+"-"+anyHash, ""
	template := deployment.Spec.Template.DeepCopy()
	template.Labels = withLabels(template.Labels, map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: anyHash})
	return fromReplicaSet(set, template)
}

func fromReplicaSet(set *appsv1.ReplicaSet, template *corev1.PodTemplateSpec) *corev1.Pod {
	return controlledBy(fromTemplate(template, set.Name+"-"+anySuffix, set.Namespace), "ReplicaSet", &set.ObjectMeta)
}

// fromStatefulSet makes the set's first pod, as k8s.io/kubernetes/pkg/controller/statefulset.newStatefulSetPod does.
func fromStatefulSet(set *appsv1.StatefulSet) *corev1.Pod {
	ordinal := int32(0)
	if set.Spec.Ordinals != nil {
		ordinal = set.Spec.Ordinals.Start
	}
	name := fmt.Sprintf("%s-%d", set.Name, ordinal)
	pod := fromTemplate(&set.Spec.Template, name, set.Namespace)
	pod.Labels = withLabels(pod.Labels, map[string]string{appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: fmt.Sprint(ordinal)})
	pod.Spec.Hostname, pod.Spec.Subdomain = name, set.Spec.ServiceName
	for _, claim := range set.Spec.VolumeClaimTemplates {
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == claim.Name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name + "-" + name},
		}})
	}
	return controlledBy(pod, "StatefulSet", &set.ObjectMeta)
}

func withLabels(labels, more map[string]string) map[string]string {
	all := make(map[string]string)
	maps.Copy(all, labels)
	maps.Copy(all, more)
	return all
}
