package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestNeeds(t *testing.T) {
	object := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{{Name: "init", EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: object("twice"), Optional: new(true)}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object("s"), Optional: new(true)}},
		}}}
		c := &pod.Spec.Containers[0]
		c.Env = []corev1.EnvVar{
			{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: object("twice")}}},
			{Name: "B", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: object("s"), Optional: new(true)}}},
			{Name: "C", Value: "literal"},
		}
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "config", MountPath: "/config"}}
		claim := func(name string) corev1.VolumeSource {
			return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
		}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "data", VolumeSource: claim("c")},
			{Name: "nobody-mounts-this", VolumeSource: claim("unused")},
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: object("copied")}}},
		}
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: object("debug")}}},
		}}}
	})
	want := []Reference{
		{"ConfigMap", "ns", "twice", false},
		{"PersistentVolumeClaim", "ns", "c", false},
		{"Secret", "ns", "s", true},
	}
	if diff := cmp.Diff(want, Needs(pod)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
