package input

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenMount is where programs look for the service account's token:
// k8s.io/kubernetes/plugin/pkg/admission/serviceaccount.DefaultAPITokenMountPath.
const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

// admit adds what an API server would have added, and that makes a difference to a checkpoint, to a pod that has not
// been through one: its namespace and the volume with the service account's token.
func admit(pod *corev1.Pod) {
	pod.Namespace = cmp.Or(pod.Namespace, metav1.NamespaceDefault)
	spec := &pod.Spec
	if pod.UID != "" || spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken {
		return
	}
	spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount, "default")
	volume := tokenVolume()
	var mounted bool
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenMount }) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: tokenMount, ReadOnly: true})
				mounted = true
			}
		}
	}
	if mounted {
		spec.Volumes = append(spec.Volumes, volume)
	}
}

// tokenVolume is what plugin/pkg/admission/serviceaccount.TokenVolumeSource makes.
func tokenVolume() corev1.Volume {
	return corev1.Volume{Name: "kube-api-access-" + anySuffix, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}
