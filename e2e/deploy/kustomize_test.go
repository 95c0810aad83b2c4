// Package deploy_test holds the manifests and the chart in deploy/ to Kubernetes' types, and to each other.
package deploy_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const base = "base"

// kustomizations are the directories, relative to deploy/.
func kustomizations(t *testing.T) []string {
	t.Helper()
	overlays, err := os.ReadDir("../../deploy/overlays")
	if err != nil {
		t.Fatal(err)
	}
	dirs := []string{base}
	for _, overlay := range overlays {
		dirs = append(dirs, filepath.Join("overlays", overlay.Name()))
	}
	return dirs
}

// build is what `kubectl kustomize` prints.
func build(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("../../deploy", dir))
	if err != nil {
		t.Fatal(err)
	}
	data, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

// decode reads objects, of which every field must be one that Kubernetes knows.
func decode(t *testing.T, data []byte) (objects []runtime.Object) {
	t.Helper()
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := strict.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		objects = append(objects, object)
	}
}

func daemonSet(t *testing.T, objects []runtime.Object) *appsv1.DaemonSet {
	t.Helper()
	for _, object := range objects {
		if d, ok := object.(*appsv1.DaemonSet); ok {
			return d
		}
	}
	t.Fatal("there is no DaemonSet")
	return nil
}

// TestKustomizations: whatever an overlay changes, the agent has no more rights than it needs, and sees the node's mounts.
func TestKustomizations(t *testing.T) {
	for _, dir := range kustomizations(t) {
		t.Run(dir, func(t *testing.T) {
			pod := daemonSet(t, build(t, dir)).Spec.Template.Spec
			container := pod.Containers[0]
			rights := container.SecurityContext
			if rights.Privileged != nil || *rights.AllowPrivilegeEscalation || !*rights.ReadOnlyRootFilesystem ||
				rights.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || rights.Capabilities.Drop[0] != "ALL" {
				t.Errorf("it has the rights %+v", rights)
			}
			if !pod.HostNetwork || len(container.Ports) > 0 || pod.HostPID || pod.HostIPC {
				t.Error("of the node it shares the network, on which it listens nowhere, and nothing else")
			}
			host := make(map[string]string)
			for _, volume := range pod.Volumes {
				if volume.HostPath != nil {
					host[volume.Name] = volume.HostPath.Path
				}
			}
			if len(host) < 4 {
				t.Errorf("of the node it mounts only %v", host)
			}
			for _, mount := range container.VolumeMounts {
				path, fromHost := host[mount.Name]
				if fromHost && (mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationHostToContainer) {
					t.Errorf("what the node mounts below %s is not seen", path)
				}
				if fromHost && path != mount.MountPath {
					t.Errorf("%s is mounted as %s: manifests would name paths that the kubelet has not", path, mount.MountPath)
				}
			}
		})
	}
}

// TestEveryMountSaysWhy: above each mount of the base is a comment.
func TestEveryMountSaysWhy(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/base/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mounts, above := 0, ""
	for line := range strings.Lines(string(manifest)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "- {name: ") && strings.Contains(line, "mountPath: ") {
			mounts++
			if !strings.HasPrefix(above, "# ") {
				t.Errorf("nothing says why there is %s", line)
			}
		}
		above = line
	}
	if want := len(daemonSet(t, build(t, base)).Spec.Template.Spec.Containers[0].VolumeMounts); mounts != want {
		t.Errorf("%d mounts were found of %d", mounts, want)
	}
}
