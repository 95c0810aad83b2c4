package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tokenMount = "/var/run/secrets/kubernetes.io/serviceaccount"

func (g *generator) volumes() {
	for range g.IntN(6) {
		g.pod.Spec.Volumes = append(g.pod.Spec.Volumes, corev1.Volume{Name: g.name("v"), VolumeSource: g.volume()})
	}
	if g.chance(0.05) { // what nobody mounts does not matter
		g.pod.Spec.Volumes = append(g.pod.Spec.Volumes, corev1.Volume{Name: g.name("unused"), VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}})
	}
	if g.chance(0.05) { // names that we use ourselves
		g.pod.Spec.Volumes = append(g.pod.Spec.Volumes,
			corev1.Volume{Name: "checkpointer-env", VolumeSource: g.volume()}, corev1.Volume{Name: "checkpointer-secrets", VolumeSource: g.volume()})
	}
}

func (g *generator) volume() corev1.VolumeSource {
	items := several(g, 2, func() corev1.KeyToPath {
		return corev1.KeyToPath{Key: g.name("key"), Path: g.name("dir") + "/file", Mode: maybe(g, 0.3, int32(0o400), 0o644)}
	})
	mode, optional := maybe(g, 0.3, int32(0o400), 0o440, 0o644), maybe(g, 0.3, true, false)
	switch g.IntN(10) {
	case 0:
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: pick(g, "/", "/etc", "/var/lib/x"), Type: maybe(g, 0.5, corev1.HostPathUnset, corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathSocket)}}
	case 1:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: pick(g, "", corev1.StorageMediumMemory), SizeLimit: maybe(g, 0.3, resource.MustParse("1Gi"))}}
	case 2:
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: items, DefaultMode: mode, Optional: optional}}
	case 3:
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Items: items, DefaultMode: mode, Optional: optional}}
	case 4:
		return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{DefaultMode: mode, Items: g.downward()}}
	case 5, 6:
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: mode, Sources: several(g, 3, g.projection)}}
	case 7:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/export", ReadOnly: g.chance(0.5)}}
	case 8:
		return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "example.com/data:1", PullPolicy: pick(g, "", corev1.PullAlways)}}
	default:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: g.bound(), ReadOnly: g.chance(0.3)}}
	}
}

func (g *generator) downward() []corev1.DownwardAPIVolumeFile {
	return several(g, 2, func() corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{Path: g.name("file"), FieldRef: &corev1.ObjectFieldSelector{FieldPath: pick(g, "metadata.name", "metadata.labels", "metadata.annotations")}}
	})
}

func (g *generator) projection() corev1.VolumeProjection {
	object := corev1.LocalObjectReference{Name: "o"}
	switch g.IntN(6) {
	case 0:
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: object, Optional: maybe(g, 0.5, true)}}
	case 1:
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: object, Optional: maybe(g, 0.5, true)}}
	case 2:
		return corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{Items: g.downward()}}
	case 3:
		return corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: new("bundle"), Path: g.name("ca")}}
	case 4:
		return corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/signer", KeyType: "ED25519", CredentialBundlePath: g.name("bundle")}}
	default:
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: g.name("token"), Audience: pick(g, "", "vault"), ExpirationSeconds: maybe(g, 0.5, int64(600))}}
	}
}

// bound makes a claim that is bound to a volume of a kind that a static pod can use.
func (g *generator) bound() string {
	name := g.claim()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "claim"}}
	claim.Spec.VolumeName, claim.Status.Phase = "pv-"+name, corev1.ClaimBound
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: g.pod.Namespace, Name: name, UID: "claim"}
	pv.Spec.PersistentVolumeSource = pick(g,
		corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}},
		corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/disk"}},
		corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs", Path: "/x"}})
	pv.Spec.MountOptions = several(g, 1, func() string { return pick(g, "ro", "nfsvers=4.1") })
	g.refs.PVCs[name], g.refs.PVs[pv.Name] = claim, pv
	return name
}

// mounts mounts some of the volumes, some of them inside others.
func (g *generator) mounts() []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	taken := make(map[string]bool)
	for _, v := range g.pod.Spec.Volumes {
		path := pick(g, "/a", "/a/b", "/a/b/c", "/d", "/d/e", "/f") + pick(g, "", fmt.Sprintf("/%d", len(mounts)))
		if taken[path] || v.CSI != nil || g.chance(0.3) {
			continue
		}
		taken[path] = true
		mount := corev1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: g.chance(0.3)}
		switch {
		case g.chance(0.2):
			mount.SubPath = "sub/path"
		case g.chance(0.1):
			mount.SubPathExpr = "$(A)"
		case mount.ReadOnly && g.chance(0.3):
			mount.RecursiveReadOnly = new(pick(g, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible))
		case g.chance(0.2):
			mount.MountPropagation = new(corev1.MountPropagationHostToContainer)
		}
		mounts = append(mounts, mount)
	}
	return mounts
}

// serviceAccount is what the API server's admission adds
// (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount).
func (g *generator) serviceAccount() {
	spec := &g.pod.Spec
	spec.ServiceAccountName = pick(g, "default", "mine")
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken {
		return
	}
	name := "kube-api-access-x7k2p"
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o644)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		},
	}}})
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: tokenMount, ReadOnly: true})
		}
	}
}
