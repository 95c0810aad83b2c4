package generate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// spoil gives the pod one thing that can't work without an API server, and says what.
func (g *generator) spoil() string {
	spec := &g.pod.Spec
	container := &spec.Containers[0]
	mount := func(source corev1.VolumeSource) {
		name := g.name("spoiled")
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	switch g.IntN(9) {
	case 0:
		spec.RuntimeClassName = new("kata")
		return "spec.runtimeClassName"
	case 1:
		spec.RestartPolicy = pick(g, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure)
		return "spec.restartPolicy"
	case 2:
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		return "spec.resourceClaims"
	case 3:
		one := resource.MustParse("1")
		set(&container.Resources.Limits, "example.com/gpu", one)
		set(&container.Resources.Requests, "example.com/gpu", one)
		return "example.com/gpu"
	case 4:
		mount(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}})
		return ".csi"
	case 5:
		mount(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}}})
		return ".ephemeral"
	case 6:
		mount(pick(g,
			corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "192.0.2.1", IQN: "iqn.2001-04.com.example:x"}},
			corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"m"}}},
			corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v"}}))
		return "spec.volumes[spoiled"
	case 7:
		name := g.claim()
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		claim.Spec.VolumeName = name
		g.refs.PVCs[name], g.refs.PVs[name] = claim, pv
		mount(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
		return ".persistentVolumeClaim"
	default:
		container.Env = append(container.Env, corev1.EnvVar{Name: "GONE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "deleted"}, Key: "k",
		}}})
		return ".secretKeyRef"
	}
}
