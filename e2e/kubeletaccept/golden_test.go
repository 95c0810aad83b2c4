package kubeletaccept

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/kubelet"
)

// TestGoldenManifests lets the kubelet read what the golden tests of internal/manifest hold.
func TestGoldenManifests(t *testing.T) {
	files, err := filepath.Glob("../../internal/manifest/testdata/*/want.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden cases", err)
	}
	dir := t.TempDir()
	names := make(map[string]bool)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := yaml.Unmarshal(data, &pod); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		// Several cases are variants of one pod, and the kubelet takes one of a name.
		pod.Name = name
		names[name] = true
		if data, err = yaml.Marshal(pod); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdicts, err := kubelet.Read(t.Context(), dir, generate.NodeName)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range verdicts.Rejected {
		t.Errorf("%s: the kubelet rejects it: %v", name, err)
	}
	for _, pod := range verdicts.Pods {
		delete(names, kubelet.ParentName(pod, generate.NodeName))
	}
	if len(names) != len(verdicts.Rejected) {
		t.Errorf("the kubelet did not see %v", names)
	}
}

// A harness that accepts everything would prove nothing.
func TestKubeletRejects(t *testing.T) {
	dir := t.TempDir()
	for name, manifest := range map[string]string{
		"no-kind":         `{}`,
		"service-account": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"serviceAccountName":"x","containers":[{"name":"c","image":"i"}]}}`,
		"secret":          `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]}]}}`,
		"good":            `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[{"name":"c","image":"i","securityContext":{"privileged":true}}]}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdicts, err := kubelet.Read(t.Context(), dir, generate.NodeName)
	if err != nil {
		t.Fatal(err)
	}
	if len(verdicts.Pods) != 1 || verdicts.Pods[0].Name != "c-"+generate.NodeName || len(verdicts.Rejected) != 3 {
		t.Errorf("accepted %v, rejected %v", verdicts.Pods, verdicts.Rejected)
	}
}
