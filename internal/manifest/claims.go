package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// convertClaim replaces a claim by what it is bound to, where a static pod can use that.
func (c *conversion) convertClaim(v *corev1.Volume, path string) {
	claim := v.PersistentVolumeClaim
	pv := c.boundTo(claim.ClaimName, path)
	if pv == nil {
		return
	}
	path += "[" + pv.Name + "]"
	if mode := pv.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
		c.refuse(path, "it is a block device, and a static pod's volume can only be a directory", "use a claim with volumeMode Filesystem, of a PersistentVolume of type local, hostPath or nfs")
		return
	}
	source := pv.Spec.PersistentVolumeSource.DeepCopy()
	persistentVolumeFields.apply(source, path, c.report)
	options := mountOptions(pv)
	readOnly := claim.ReadOnly || slices.Contains(options, "ro")
	switch {
	case source.HostPath != nil:
		v.VolumeSource = corev1.VolumeSource{HostPath: source.HostPath}
		c.readOnly[v.Name] = readOnly
	case source.Local != nil:
		c.convertLocal(v, source.Local, path)
		c.readOnly[v.Name] = readOnly
	case source.NFS != nil:
		if len(options) > 0 {
			c.warn(path, "the mount options "+strings.Join(options, ",")+" are lost: an NFS volume in a pod can't have any", "")
		}
		source.NFS.ReadOnly = source.NFS.ReadOnly || readOnly
		v.VolumeSource = corev1.VolumeSource{NFS: source.NFS}
	}
}

// convertLocal makes a hostPath of a local volume. One that may be a block device is refused: the kubelet formats and
// mounts it for a local volume (k8s.io/kubernetes/pkg/volume/local), and for a hostPath it does not.
func (c *conversion) convertLocal(v *corev1.Volume, local *corev1.LocalVolumeSource, path string) {
	if local.FSType != nil || strings.HasPrefix(local.Path, "/dev/") {
		c.refuse(path+".local", "the kubelet mounts a block device only for a claim", "mount the device at boot and make a local PersistentVolume of the directory")
		return
	}
	directory := corev1.HostPathDirectory
	v.VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: local.Path, Type: &directory}}
}

// boundTo is the volume that a claim is bound to, or nil when that is a reason to refuse (as in
// k8s.io/kubernetes/pkg/kubelet/volumemanager/populator, getPVCExtractPV and getPVSpec).
func (c *conversion) boundTo(name, path string) *corev1.PersistentVolume {
	claim := c.refs.PVCs[name]
	if claim == nil {
		c.refuse(path, fmt.Sprintf("the PersistentVolumeClaim %s/%s does not exist", c.parent.Namespace, name), useHostPath)
		return nil
	}
	switch phase := claim.Status.Phase; {
	case phase == corev1.ClaimLost:
		c.refuse(path, fmt.Sprintf("the PersistentVolumeClaim %s/%s has lost its volume", c.parent.Namespace, name), makeClaimAgain)
		return nil
	case claim.Spec.VolumeName == "" || phase != "" && phase != corev1.ClaimBound:
		c.refuse(path, fmt.Sprintf("the PersistentVolumeClaim %s/%s is not bound", c.parent.Namespace, name), "see with kubectl describe what it waits for: the pod is looked at again when it starts")
		return nil
	}
	pv := c.refs.PVs[claim.Spec.VolumeName]
	if pv == nil {
		c.refuse(path, fmt.Sprintf("the PersistentVolume %s does not exist", claim.Spec.VolumeName), useHostPath)
		return nil
	}
	if ref := pv.Spec.ClaimRef; ref != nil && (ref.Namespace != c.parent.Namespace || ref.Name != name || ref.UID != "" && claim.UID != "" && ref.UID != claim.UID) {
		c.refuse(path, fmt.Sprintf("the PersistentVolume %s is bound to another claim", pv.Name), makeClaimAgain)
		return nil
	}
	return pv
}

// mountOptions are the volume's, also by the annotation that they once were.
func mountOptions(pv *corev1.PersistentVolume) []string {
	options := pv.Spec.MountOptions
	if annotation := pv.Annotations[corev1.MountOptionAnnotation]; annotation != "" {
		options = slices.Concat(options, strings.Split(annotation, ","))
	}
	return options
}
