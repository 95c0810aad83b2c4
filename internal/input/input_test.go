package input_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/internal/input"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// What people write, and what they are told when it is wrong, is in cmd/checkpointer/testdata/script/render*.txt.

func TestReferencesAreOfThePodsNamespace(t *testing.T) {
	in, err := input.Parse("test", []byte(`
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: a, uid: u}
spec:
  containers:
  - name: c
    envFrom: [{configMapRef: {name: here}}, {configMapRef: {name: elsewhere}}, {secretRef: {name: s, optional: true}}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: here, namespace: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere}}
---
{apiVersion: v1, kind: Secret, metadata: {name: t, namespace: a}, data: {k: AA==}, stringData: {k: overrides, l: new}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []manifest.Reference{{Kind: "ConfigMap", Namespace: "a", Name: "elsewhere"}, {Kind: "Secret", Namespace: "a", Name: "s", Optional: true}}
	if len(in.Missing) != 2 || in.Missing[0] != want[0] || in.Missing[1] != want[1] {
		t.Errorf("missing are %v", in.Missing)
	}
	if data := in.References.Secrets["t"].Data; string(data["k"]) != "overrides" || string(data["l"]) != "new" {
		t.Errorf("the Secret holds %q", data)
	}
	if in.References.PVs["pv"] == nil {
		t.Error("the volume is not found")
	}
}

// A pod that has been through an API server has all that admission adds, and must not get it twice.
func TestAdmittedPodStaysAsItIs(t *testing.T) {
	for name, test := range map[string]struct {
		meta, spec string
		volumes    int
	}{
		"new":            {"", "", 1},
		"admitted":       {", uid: u", "", 0},
		"wants no token": {"", "automountServiceAccountToken: false,", 0},
		"brings its own": {"", "volumes: [{name: t, emptyDir: {}}],", 1},
	} {
		t.Run(name, func(t *testing.T) {
			mounts := ""
			if strings.HasPrefix(test.spec, "volumes") {
				mounts = ", volumeMounts: [{name: t, mountPath: /var/run/secrets/kubernetes.io/serviceaccount}]"
			}
			in, err := input.Parse("test", []byte("{apiVersion: v1, kind: Pod, metadata: {name: p"+test.meta+"}, spec: {"+test.spec+" containers: [{name: c"+mounts+"}]}}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(in.Pod.Spec.Volumes); got != test.volumes {
				t.Errorf("%d volumes, want %d", got, test.volumes)
			}
		})
	}
}

// FuzzParse: whatever a file holds, it is read or an error of one line.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../manifest/testdata/*/pod.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"kind":"List","apiVersion":"v1","items":[null,1,{"kind":"List"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := input.Parse("file", data)
		if err == nil && (in.Pod == nil || in.Pod.Name == "" || in.Pod.Namespace == "" || len(in.Pod.Spec.Containers) == 0) {
			t.Errorf("no pod: %v", in.Pod)
		}
	})
}
