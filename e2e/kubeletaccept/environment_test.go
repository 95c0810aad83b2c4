package kubeletaccept

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/fieldpath"
	envutil "k8s.io/kubernetes/pkg/kubelet/util/env"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// sameEnvironment says where a container of the checkpoint, without an API server, would have another environment than
// the parent's has with one.
func sameEnvironment(t *testing.T, j *judgment) {
	t.Helper()
	withAPI := map[string]string{"KUBERNETES_SERVICE_HOST": options.ServiceHost, "KUBERNETES_SERVICE_PORT": options.ServicePort}
	want := &environments{pod: j.parent, parent: j.parent, refs: j.refs, services: withAPI}
	got := &environments{pod: j.decoded, parent: j.parent}
	for _, asset := range j.result.Assets {
		for name, content := range asset.Files {
			got.files = t.TempDir()
			if err := os.WriteFile(filepath.Join(got.files, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	decoded := make(map[string]*corev1.Container)
	visit(j.decoded, func(c *corev1.Container) { decoded[c.Name] = c })
	visit(j.parent, func(c *corev1.Container) {
		wanted, err := want.of(c)
		if err != nil {
			t.Fatalf("container %s of the parent: %v", c.Name, err)
		}
		have, err := got.of(decoded[c.Name])
		if err != nil {
			t.Errorf("container %s: %v", c.Name, err)
			return
		}
		maps.DeleteFunc(have, func(name, _ string) bool {
			_, known := wanted[name]
			return !known && strings.Contains(name, "CKPT_K") // a part of a value
		})
		if !maps.Equal(wanted, have) {
			t.Errorf("container %s: its environment is %q and its parent's %q", c.Name, have, wanted)
		}
	})
}

// environments makes containers' environments as k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go,
// makeEnvironmentVariables does. That is a method of the whole kubelet; the parts that can go wrong, expansion, the file
// parser and the field paths, are the kubelet's own.
type environments struct {
	pod      *corev1.Pod
	parent   *corev1.Pod // pod itself, or what it is a checkpoint of
	refs     manifest.References
	services map[string]string
	files    string // directory of the emptyDir with the variables
}

func (e *environments) of(c *corev1.Container) (map[string]string, error) {
	env := make(map[string]string)
	for _, from := range c.EnvFrom {
		if ref := from.ConfigMapRef; ref != nil && e.refs.ConfigMaps[ref.Name] != nil {
			for key, value := range e.refs.ConfigMaps[ref.Name].Data {
				env[from.Prefix+key] = value
			}
		}
		if ref := from.SecretRef; ref != nil && e.refs.Secrets[ref.Name] != nil {
			for key, value := range e.refs.Secrets[ref.Name].Data {
				env[from.Prefix+key] = string(value)
			}
		}
	}
	mapping := expansion.MappingFuncFor(env, e.services)
	for _, v := range c.Env {
		value := v.Value
		if value != "" {
			value = expansion.Expand(value, mapping)
		} else if v.ValueFrom != nil {
			var ok bool
			var err error
			if value, ok, err = e.resolve(c, v.ValueFrom); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			} else if !ok {
				continue
			}
		}
		env[v.Name] = value
	}
	for name, value := range e.services {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	return env, nil
}

// resolve says false for an optional source that is not there.
func (e *environments) resolve(c *corev1.Container, source *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case source.FieldRef != nil:
		value, err := e.field(source.FieldRef.FieldPath)
		return value, true, err
	case source.ResourceFieldRef != nil:
		c = c.DeepCopy()
		resource.MergeContainerResourceLimits(c, allocatable)
		value, err := resource.ExtractContainerResourceValue(source.ResourceFieldRef, c)
		return value, true, err
	case source.ConfigMapKeyRef != nil:
		if object := e.refs.ConfigMaps[source.ConfigMapKeyRef.Name]; object != nil {
			value, ok := object.Data[source.ConfigMapKeyRef.Key]
			return value, ok, nil
		}
		return "", false, nil
	case source.SecretKeyRef != nil:
		if object := e.refs.Secrets[source.SecretKeyRef.Name]; object != nil {
			value, ok := object.Data[source.SecretKeyRef.Key]
			return string(value), ok, nil
		}
		return "", false, nil
	default:
		value, err := envutil.ParseEnv(filepath.Join(e.files, source.FileKeyRef.Path), source.FileKeyRef.Key)
		if err == nil && value == "" {
			err = fmt.Errorf("environment variable key %q not found", source.FileKeyRef.Key)
		}
		return value, true, err
	}
}

// field is podFieldSelectorRuntimeValue, for a kubelet that knows its node by the parent's status.
func (e *environments) field(path string) (string, error) {
	switch path {
	case "spec.nodeName":
		return generate.NodeName, nil
	case "spec.serviceAccountName":
		return e.pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs":
		return address(path, e.parent), nil
	}
	return fieldpath.ExtractFieldPathAsString(e.pod, path)
}
