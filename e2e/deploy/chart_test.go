package deploy_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// chartValues are those with which the chart makes what a kustomization makes.
var chartValues = map[string]map[string]any{
	base:                     {},
	"overlays/control-plane": {"nodeSelector": map[string]any{"node-role.kubernetes.io/control-plane": ""}},
	"overlays/crio":          {"runtimeDir": "/run/crio"},
	"overlays/edge":          {"nodeSelector": map[string]any{"node-role.kubernetes.io/edge": ""}, "maxUnavailable": "50%"},
	"overlays/k3s":           rancher("k3s"),
	"overlays/rke2":          rancher("rke2"),
	"overlays/rbac":          {"rbac": map[string]any{"create": true, "server": "https://api.example.com:6443"}},
}

func rancher(distribution string) map[string]any {
	return map[string]any{
		"kubernetesDir": "/var/lib/rancher/" + distribution + "/agent", "runtimeDir": "/run/k3s/containerd",
		"kubeconfig": "kubelet.kubeconfig", "manifests": "pod-manifests",
	}
}

// TestTheChartMakesWhatKustomizeMakes, object by object.
func TestTheChartMakesWhatKustomizeMakes(t *testing.T) {
	for _, dir := range kustomizations(t) {
		t.Run(dir, func(t *testing.T) {
			values, ok := chartValues[dir]
			if !ok {
				t.Fatal("no values of the chart do the same")
			}
			want, got := byName(t, build(t, dir)), byName(t, template(t, values))
			if diff := gocmp.Diff(
				want, got,
				cmpopts.SortSlices(func(a, b corev1.EnvVar) int { return cmp.Compare(a.Name, b.Name) }),
				cmpopts.SortSlices(func(a, b corev1.VolumeMount) int { return cmp.Compare(a.MountPath, b.MountPath) }),
				cmpopts.SortSlices(func(a, b corev1.Volume) int { return cmp.Compare(a.Name, b.Name) }),
			); diff != "" {
				t.Errorf("(-kustomize +chart)\n%s", diff)
			}
		})
	}
}

func TestChartValues(t *testing.T) {
	d := daemonSet(t, template(t, map[string]any{
		"image":      map[string]any{"repository": "example.com/checkpointer", "tag": "v1"},
		"namespaces": []any{"kube-system", "edge"},
		"args":       []any{"--log-level=debug"},
		"kubeletDir": "/data/kubelet",
	}))
	container := d.Spec.Template.Spec.Containers[0]
	if container.Image != "example.com/checkpointer:v1" {
		t.Errorf("the image is %s", container.Image)
	}
	if want := []string{"run", "--log-level=debug"}; !gocmp.Equal(container.Args, want) {
		t.Errorf("the arguments are %q, want %q", container.Args, want)
	}
	environment := make(map[string]string)
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	if environment["CHECKPOINTER_NAMESPACES"] != "kube-system,edge" || environment["CHECKPOINTER_KUBELET_DIR"] != "/data/kubelet" {
		t.Errorf("the environment is %v", environment)
	}
}

// TestTheChartGivesRightsInEachNamespace that is watched, and in no other.
func TestTheChartGivesRightsInEachNamespace(t *testing.T) {
	objects := byName(t, template(t, map[string]any{
		"namespaces": []any{"edge", "shop"},
		"rbac":       map[string]any{"create": true, "server": "https://api.example.com:6443"},
	}))
	var roles, bindings []string
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.Role:
			roles = append(roles, o.Namespace+"/"+o.Name)
		case *rbacv1.RoleBinding:
			bindings = append(bindings, o.Namespace+"/"+o.RoleRef.Name)
		}
	}
	slices.Sort(roles)
	slices.Sort(bindings)
	want := []string{"default/pod-checkpointer-service", "edge/pod-checkpointer", "shop/pod-checkpointer"}
	if !slices.Equal(roles, want) || !slices.Equal(bindings, want) {
		t.Errorf("roles are %q, bound are %q, want %q", roles, bindings, want)
	}
}

func TestAServiceAccountNeedsAServer(t *testing.T) {
	if _, err := render(t, map[string]any{"rbac": map[string]any{"create": true}}); err == nil || !strings.Contains(err.Error(), "rbac.server") {
		t.Errorf("the error is %v", err)
	}
}

// template is what `helm template` prints.
func template(t *testing.T, values map[string]any) (objects []runtime.Object) {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, decode(t, []byte(content))...)
		}
	}
	return objects
}

func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir("../../deploy/chart")
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "test", Namespace: "kube-system"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Render(chart, all)
}

// byName maps objects by kind and name. That of a ConfigMap ends in a hash of the content, and each tool has its own.
func byName(t *testing.T, objects []runtime.Object) map[string]runtime.Object {
	t.Helper()
	named := make(map[string]runtime.Object)
	for _, object := range objects {
		access, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := object.(*corev1.ConfigMap); ok {
			access.SetName(unhashed(access.GetName()))
		}
		named[fmt.Sprintf("%T %s/%s", object, access.GetNamespace(), access.GetName())] = object
	}
	for _, volume := range daemonSet(t, objects).Spec.Template.Spec.Volumes {
		if volume.ConfigMap != nil {
			volume.ConfigMap.Name = unhashed(volume.ConfigMap.Name)
		}
	}
	return named
}

func unhashed(name string) string { return name[:strings.LastIndex(name, "-")] }
