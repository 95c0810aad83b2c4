package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// The kubelet's directories for the volumes of its plugins, as k8s.io/utils/strings.EscapeQualifiedName makes them.
const (
	pluginSecret      = "kubernetes.io~secret"
	pluginConfigMap   = "kubernetes.io~configmap"
	pluginProjected   = "kubernetes.io~projected"
	pluginDownwardAPI = "kubernetes.io~downward-api"
)

// convertVolumes drops the volumes that nothing uses, and makes hostPaths of those that need the API server.
func (c *conversion) convertVolumes() {
	c.readOnly = make(map[string]bool)
	used := usedVolumes(&c.parent.Spec)
	c.pod.Spec.Volumes = slices.DeleteFunc(c.pod.Spec.Volumes, func(v corev1.Volume) bool { return !used[v.Name] })
	for i := range c.pod.Spec.Volumes {
		c.convertVolume(&c.pod.Spec.Volumes[i])
	}
}

// usedVolumes names the volumes that the kubelet sets up: those that a container mounts
// (k8s.io/kubernetes/pkg/volume/util.GetPodVolumeNames), and those that it reads variables from. Ephemeral containers
// do not count, because the checkpoint has none.
func usedVolumes(spec *corev1.PodSpec) map[string]bool {
	used := make(map[string]bool)
	for container := range containersOf(spec) {
		for _, mount := range container.VolumeMounts {
			used[mount.Name] = true
		}
		for _, device := range container.VolumeDevices {
			used[device.Name] = true
		}
		for _, env := range container.Env {
			if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
				used[env.ValueFrom.FileKeyRef.VolumeName] = true
			}
		}
	}
	return used
}

func (c *conversion) convertVolume(v *corev1.Volume) {
	path := item("spec", "volumes", v.Name)
	volumeFields.apply(&v.VolumeSource, path, c.report)
	switch {
	case v.Secret != nil:
		c.copyVolume(v, pluginSecret)
	case v.ConfigMap != nil:
		c.copyVolume(v, pluginConfigMap)
	case v.DownwardAPI != nil:
		c.copyVolume(v, pluginDownwardAPI)
	case v.Projected != nil:
		c.warnAboutProjections(v.Projected, path+".projected")
		c.copyVolume(v, pluginProjected)
	case v.PersistentVolumeClaim != nil:
		c.convertClaim(v, path+".persistentVolumeClaim")
	case v.Image != nil:
		v.Image.PullPolicy = pullPolicy(v.Image.PullPolicy)
	}
}

// copyVolume replaces a volume that the kubelet fills with the API server's help by a directory with the same files.
// The type Directory makes the kubelet refuse to start the pod without them: with none, it would start with an empty
// directory.
func (c *conversion) copyVolume(v *corev1.Volume, plugin string) {
	directory := corev1.HostPathDirectory
	v.VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: c.hostDir(v.Name), Type: &directory}}
	c.readOnly[v.Name] = true
	c.assets = append(c.assets, Asset{Volume: v.Name, Plugin: plugin, Dirs: nestedMountPoints(v.Name, &c.parent.Spec)})
}

// warnAboutProjections tells of files that expire and that nobody renews during an outage.
func (c *conversion) warnAboutProjections(projected *corev1.ProjectedVolumeSource, path string) {
	for i, source := range projected.Sources {
		path := fmt.Sprintf("%s.sources[%d]", path, i)
		if token := source.ServiceAccountToken; token != nil && token.Audience != "" {
			c.warn(path+".serviceAccountToken", "the token for the audience "+token.Audience+" is copied as it is and not renewed without the API server", "")
		}
		if source.PodCertificate != nil {
			c.warn(path+".podCertificate", "the certificate of the signer "+source.PodCertificate.SignerName+" is copied as it is and not renewed without the API server", "")
		}
	}
}
