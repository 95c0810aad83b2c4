package input

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	strictjson "sigs.k8s.io/json"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// found is a pod, and what it was made of.
type found struct {
	where   string
	pod     *corev1.Pod
	unknown manifest.Unknown
}

// objects is what was found in the documents.
type objects struct {
	pods       []found
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
	claims     []*corev1.PersistentVolumeClaim
	volumes    []*corev1.PersistentVolume
	ignored    []string
}

// add sorts a document in by its kind.
func (o *objects) add(d document) error {
	var meta struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := decode(d.data, &meta); err != nil {
		return explain(err, d.data, &meta)
	}
	if kind, list := strings.CutSuffix(meta.Kind, "List"); list {
		return o.addItems(d, metav1.TypeMeta{APIVersion: meta.APIVersion, Kind: kind}, meta.Items)
	}
	kind := meta.APIVersion + "/" + meta.Kind
	switch kind {
	case "v1/ConfigMap":
		return appendTo(&o.configMaps, d.data)
	case "v1/Secret":
		return appendTo(&o.secrets, d.data)
	case "v1/PersistentVolumeClaim":
		return appendTo(&o.claims, d.data)
	case "v1/PersistentVolume":
		return appendTo(&o.volumes, d.data)
	}
	if object, spec, pod := makerOf(kind); object != nil {
		return o.addPod(d, object, spec, pod)
	}
	if meta.Kind == "" || meta.APIVersion == "" {
		return errors.New("kind and apiVersion are needed")
	}
	o.ignored = append(o.ignored, meta.Kind)
	return nil
}

// addItems adds the members of a list. Those of a PodList and the like may leave out what they are.
func (o *objects) addItems(d document, of metav1.TypeMeta, items []json.RawMessage) error {
	for i, data := range items {
		var object map[string]any
		if err := decode(data, &object); err != nil {
			return fmt.Errorf("items[%d]: %w", i, explain(err, data, &object))
		}
		if object["kind"] == nil {
			if of.Kind == "" {
				return fmt.Errorf("items[%d]: kind and apiVersion are needed", i)
			}
			object["apiVersion"], object["kind"] = of.APIVersion, of.Kind
			data, _ = json.Marshal(object)
		}
		if err := o.add(document{fmt.Sprintf("%s.items[%d]", d.where, i), data}); err != nil {
			return fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	return nil
}

// addPod adds the pod that an object is, or that would be made of it.
func (o *objects) addPod(d document, object any, spec string, pod func() *corev1.Pod) error {
	unknown, err := manifest.DecodeInto(d.data, object, spec)
	if err != nil {
		return explain(err, d.data, object)
	}
	made := found{where: d.where, pod: pod(), unknown: unknown}
	if len(made.pod.Spec.Containers) == 0 {
		return fmt.Errorf("%s.containers: there are none", spec)
	}
	admit(made.pod)
	if err := checkNames(made.pod); err != nil {
		return err
	}
	o.pods = append(o.pods, made)
	return nil
}

// checkNames holds a pod to what an API server asks of its names: paths are made of them.
func checkNames(pod *corev1.Pod) error {
	if pod.Name == "" {
		return errors.New("metadata.name: there is none")
	}
	if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: %q can't be a name: %s", pod.Name, problems[0])
	}
	if problems := validation.IsDNS1123Label(pod.Namespace); len(problems) > 0 {
		return fmt.Errorf("metadata.namespace: %q can't be a namespace: %s", pod.Namespace, problems[0])
	}
	return nil
}

// references picks the objects that a pod of this namespace can refer to.
func (o *objects) references(namespace string) manifest.References {
	for _, secret := range o.secrets {
		for key, text := range secret.StringData {
			if secret.Data == nil {
				secret.Data = make(map[string][]byte)
			}
			secret.Data[key] = []byte(text)
		}
	}
	return manifest.References{
		ConfigMaps: byName(o.configMaps, namespace),
		Secrets:    byName(o.secrets, namespace),
		PVCs:       byName(o.claims, namespace),
		PVs:        byName(o.volumes, metav1.NamespaceDefault), // in no namespace
	}
}

func byName[T metav1.Object](objects []T, namespace string) map[string]T {
	named := make(map[string]T)
	for _, object := range objects {
		if cmp.Or(object.GetNamespace(), metav1.NamespaceDefault) == namespace {
			named[object.GetName()] = object
		}
	}
	return named
}

// appendTo decodes an object of a type that we know well enough to find fault with.
func appendTo[T any](objects *[]*T, data []byte) error {
	object := new(T)
	unknown, err := strictjson.UnmarshalStrict(data, object)
	if err != nil {
		return explain(err, data, object)
	}
	if len(unknown) > 0 {
		return oneLine(errors.Join(unknown...))
	}
	*objects = append(*objects, object)
	return nil
}
