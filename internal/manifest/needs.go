package manifest

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Reference names an API object that a pod refers to.
type Reference struct {
	Kind            string // ConfigMap, Secret or PersistentVolumeClaim
	Namespace, Name string
	Optional        bool // the pod starts without it
}

// References is what Convert must know beside the pod. The maps hold the objects that Needs named, by their names, and
// the PersistentVolumes that the claims are bound to. A missing key means: the API server said that there is no such
// object.
type References struct {
	ConfigMaps map[string]*corev1.ConfigMap
	Secrets    map[string]*corev1.Secret
	PVCs       map[string]*corev1.PersistentVolumeClaim
	PVs        map[string]*corev1.PersistentVolume
	Unknown    Unknown // what the API server said of the pod, and corev1.Pod can't hold
}

// Needs lists what Convert must know of the API server to convert the pod: the ConfigMaps and Secrets in variables, and
// the claims. Those in volumes are not among them, because they are copied from the kubelet.
func Needs(pod *corev1.Pod) []Reference {
	needed := make(map[Reference]bool) // without Optional; the value is Optional
	add := func(kind, name string, optional *bool) {
		key := Reference{Kind: kind, Namespace: pod.Namespace, Name: name}
		others, ok := needed[key]
		needed[key] = optional != nil && *optional && (others || !ok)
	}
	for container := range containersOf(&pod.Spec) {
		for _, from := range container.EnvFrom {
			if ref := from.ConfigMapRef; ref != nil {
				add("ConfigMap", ref.Name, ref.Optional)
			}
			if ref := from.SecretRef; ref != nil {
				add("Secret", ref.Name, ref.Optional)
			}
		}
		for _, env := range container.Env {
			if env.ValueFrom == nil {
				continue
			}
			if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
				add("ConfigMap", ref.Name, ref.Optional)
			}
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				add("Secret", ref.Name, ref.Optional)
			}
		}
	}
	used := usedVolumes(&pod.Spec)
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && used[v.Name] {
			add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, nil)
		}
	}
	var references []Reference
	for reference, optional := range needed {
		reference.Optional = optional
		references = append(references, reference)
	}
	slices.SortFunc(references, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return references
}
