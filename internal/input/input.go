// Package input reads a pod and what it refers to from files, in place of an API server.
package input

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// Input is what the documents of an input hold.
type Input struct {
	Pod        *corev1.Pod
	References manifest.References
	Missing    []manifest.Reference
}

// Parse reads YAML or JSON documents: one pod, or something that makes pods, which stands for the pod that it would
// make; and the ConfigMaps, Secrets, PersistentVolumeClaims and PersistentVolumes that it refers to. A List is unpacked,
// and other kinds are ignored. The error says which document of the source, and which field of it, is wrong.
func Parse(source string, data []byte) (Input, error) {
	documents, err := split(data)
	if err != nil {
		return Input{}, fmt.Errorf("%s, %w", source, err)
	}
	if len(documents) == 0 {
		return Input{}, fmt.Errorf("%s: empty", source)
	}
	var objects objects
	for _, document := range documents {
		if err := objects.add(document); err != nil {
			return Input{}, fmt.Errorf("%s, document %s: %w", source, document.where, err)
		}
	}
	if len(objects.pods) != 1 {
		return Input{}, fmt.Errorf("%s: %w", source, objects.notOnePod())
	}
	pod := objects.pods[0]
	refs := objects.references(pod.pod.Namespace)
	refs.Unknown = pod.unknown
	return Input{Pod: pod.pod, References: refs, Missing: missing(pod.pod, refs)}, nil
}

// notOnePod says what there is instead of one pod.
func (o *objects) notOnePod() error {
	if len(o.pods) == 0 {
		if len(o.ignored) > 0 {
			return fmt.Errorf("no pod and nothing that makes pods, only %s", strings.Join(o.ignored, ", "))
		}
		return errors.New("no pod and nothing that makes pods")
	}
	var names []string
	for _, pod := range o.pods {
		names = append(names, fmt.Sprintf("%s/%s (document %s)", pod.pod.Namespace, pod.pod.Name, pod.where))
	}
	return fmt.Errorf("%d pods, and one is wanted: %s", len(o.pods), strings.Join(names, ", "))
}

// missing lists what the pod refers to and the input does not hold.
func missing(pod *corev1.Pod, has manifest.References) []manifest.Reference {
	var missing []manifest.Reference
	for _, reference := range manifest.Needs(pod) {
		var ok bool
		switch reference.Kind {
		case "ConfigMap":
			_, ok = has.ConfigMaps[reference.Name]
		case "Secret":
			_, ok = has.Secrets[reference.Name]
		case "PersistentVolumeClaim":
			_, ok = has.PVCs[reference.Name]
		}
		if !ok {
			missing = append(missing, reference)
		}
	}
	return missing
}
