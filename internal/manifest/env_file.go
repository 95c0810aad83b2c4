package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// EnvCommand is the command of the checkpointer's image that copies a file, its first argument, to its second.
const EnvCommand = "copy-env"

// The names of what hands variables from Secrets to the kubelet: an init container copies a file of our assets to an
// emptyDir in memory, because an emptyDir is the only volume from which the kubelet reads variables
// (k8s.io/kubernetes/pkg/apis/core/validation.validateFileKeyRefVolumes).
const (
	envContainer = "checkpointer-env"
	envVolume    = "checkpointer-env"     // the emptyDir
	assetVolume  = "checkpointer-secrets" // the hostPath
	envFileName  = "env"
	assetMount   = "/secrets"
	envMount     = "/env"
)

// fromFile is a variable that the kubelet reads from the file.
func (c *conversion) fromFile(name, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
		VolumeName: c.freeVolume(envVolume), Path: envFileName, Key: key,
	}}}
}

// addEnvFile adds the file with the variables, the two volumes and the init container, if any variable needs them.
func (c *conversion) addEnvFile() {
	if c.envFile.Len() == 0 {
		return
	}
	spec := &c.pod.Spec
	asset, env := c.freeVolume(assetVolume), c.freeVolume(envVolume)
	directory := corev1.HostPathDirectory
	spec.Volumes = append(spec.Volumes,
		corev1.Volume{Name: asset, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: c.hostDir(asset), Type: &directory},
		}},
		corev1.Volume{Name: env, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
		}})
	c.assets = append(c.assets, Asset{Volume: asset, Files: map[string][]byte{envFileName: c.envFile.Bytes()}})
	spec.InitContainers = slices.Insert(spec.InitContainers, 0, c.envCopier(asset, env))
}

func (c *conversion) envCopier(asset, env string) corev1.Container {
	container := corev1.Container{
		Name:            envContainer,
		Image:           c.opts.AgentImage,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{EnvCommand, assetMount + "/" + envFileName, envMount + "/" + envFileName},
		VolumeMounts: []corev1.VolumeMount{
			{Name: asset, MountPath: assetMount, ReadOnly: true},
			{Name: env, MountPath: envMount},
		},
		SecurityContext: c.copierSecurity(),
	}
	for taken := true; taken; {
		taken = false
		for other := range containersOf(&c.pod.Spec) {
			if other.Name == container.Name {
				container.Name += "-x"
				taken = true
			}
		}
	}
	if c.parent.Annotations[AnnotationKeepRequests] == "true" {
		// A pod is Guaranteed only if all its containers are. What a regular container asks for, an init container can
		// ask for at no cost: they never run together.
		container.Resources = *c.parent.Spec.Containers[0].Resources.DeepCopy()
	}
	return container
}

// copierSecurity makes the init container root, who alone may read the assets, with no other right. The parent's
// profiles are for the parent's programs.
func (c *conversion) copierSecurity() *corev1.SecurityContext {
	security := &corev1.SecurityContext{
		RunAsUser:                new(int64(0)),
		RunAsGroup:               new(int64(0)),
		RunAsNonRoot:             new(false),
		ReadOnlyRootFilesystem:   new(true),
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if pod := c.parent.Spec.SecurityContext; pod != nil {
		if pod.SeccompProfile != nil {
			security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
		}
		if pod.AppArmorProfile != nil {
			security.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
		}
	}
	return security
}

// freeVolume is a name that no volume of the parent has: the one asked for, if it can be.
func (c *conversion) freeVolume(name string) string {
	for slices.ContainsFunc(c.parent.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		name = fmt.Sprintf("%s-x", name)
	}
	return name
}
