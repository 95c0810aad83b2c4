package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// convertSpec converts the fields of the pod itself.
func (c *conversion) convertSpec() {
	spec := &c.pod.Spec
	if spec.RestartPolicy != "" && spec.RestartPolicy != corev1.RestartPolicyAlways {
		c.refuse("spec.restartPolicy", "a static pod that has ended is never started again, or runs once more at each boot", "checkpoint only pods with restartPolicy Always")
	}
	if spec.OS != nil && spec.OS.Name != corev1.Linux {
		c.refuse("spec.os.name", "checkpoints are made for Linux", "remove the annotation "+AnnotationCheckpoint)
	}
	c.warnAboutSpec()
	podSpecFields.apply(spec, "spec", c.report)
	c.warnAboutService()
	spec.RestartPolicy = corev1.RestartPolicyAlways
	spec.EnableServiceLinks = new(bool)
	if spec.Resources != nil {
		c.convertResources(spec.Resources, "spec.resources")
	}
	c.keepHostname()
}

// warnAboutSpec tells of what gets lost, or may work differently.
func (c *conversion) warnAboutSpec() {
	spec := &c.parent.Spec
	if len(spec.ImagePullSecrets) > 0 {
		// k8s.io/kubernetes/pkg/kubelet/images/pullmanager, gate KubeletEnsureSecretPulledImages, on since 1.35.
		c.warn("spec.imagePullSecrets", "a static pod can't have them, and from 1.35 on a kubelet lets nobody use an image that it pulled with a Secret who does not present that Secret: the checkpoint may not start",
			"give the credentials to the node, or set imagePullCredentialsVerificationPolicy in the kubelet's configuration")
	}
	if spec.PriorityClassName != "" && spec.Priority == nil {
		c.warn("spec.priorityClassName", "without the number that the API server looks up, the checkpoint has no priority", "set spec.priority too")
	}
	if spec.ActiveDeadlineSeconds != nil {
		c.warn("spec.activeDeadlineSeconds", "the checkpoint has no deadline", "")
	}
	if spec.HostUsers != nil && !*spec.HostUsers {
		c.warn("spec.hostUsers", "in a user namespace, hostPath volumes need a file system that supports ID-mapped mounts", "")
	}
}

// keepHostname gives the checkpoint the hostname that its parent has: the pod's name, where nothing else is set
// (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, GeneratePodHostNameAndDomain and truncatePodHostnameIfNeeded).
func (c *conversion) keepHostname() {
	spec := &c.pod.Spec
	if spec.HostNetwork || spec.Hostname != "" || spec.HostnameOverride != nil {
		return
	}
	name := c.parent.Name
	if len(name) > validation.DNS1123LabelMaxLength {
		name = strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-.")
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		c.warn("metadata.name", "it has a dot, so that it can't be set as the hostname: the checkpoint's hostname is the pod's name with the node's", "set spec.hostname")
		return
	}
	spec.Hostname = name
}

// convertResources zeroes the requests. They would be counted twice while the parent is there too, by the kubelet's
// admission (k8s.io/kubernetes/pkg/kubelet/lifecycle/predicate.go) and, through the mirror pod, by the scheduler.
// Left out, they would default to the limits (k8s.io/kubernetes/pkg/apis/core/v1.SetDefaults_Pod).
func (c *conversion) convertResources(resources *corev1.ResourceRequirements, path string) {
	if len(resources.Claims) > 0 {
		c.refuse(path+".claims", "the kubelet prepares the claimed devices with the help of the API server", "there is no way to checkpoint a pod with resource claims")
	}
	zeros := make(corev1.ResourceList)
	for _, list := range []struct {
		name      string
		resources corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		for _, name := range sortedKeys(list.resources) {
			if !slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}, name) {
				c.refuse(path+"."+list.name+"["+string(name)+"]", "a device or huge page given to the checkpoint would be missing when the parent returns, and the kubelet would reject the parent for good", "there is no way to checkpoint a pod that uses it")
				continue
			}
			zeros[name] = *zeroOf(name)
		}
	}
	if c.parent.Annotations[AnnotationKeepRequests] != "true" && len(zeros) > 0 {
		resources.Requests = zeros
	}
}
