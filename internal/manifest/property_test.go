package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pod-checkpointer/pod-checkpointer/internal/input"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// goldenPods are the pods of the golden cases, as an API server would give them.
func goldenPods(tb testing.TB) (pods map[string][]byte, references map[string]manifest.References) {
	tb.Helper()
	pods, references = make(map[string][]byte), make(map[string]manifest.References)
	files, _ := filepath.Glob("testdata/*/pod.yaml")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		in, err := input.Parse(file, data)
		if err != nil {
			tb.Fatal(err)
		}
		encoded, err := json.Marshal(in.Pod)
		if err != nil {
			tb.Fatal(err)
		}
		name := filepath.Base(filepath.Dir(file))
		pods[name], references[name] = encoded, in.References
	}
	if len(pods) < 30 {
		tb.Fatalf("only %d pods", len(pods))
	}
	return pods, references
}

// FuzzConvert decodes anything and converts what is a pod: nothing panics, and a pod is accepted or refused, with the
// same manifest each time, which holds all of the checkpoint and is refused as one.
func FuzzConvert(f *testing.F) {
	pods, references := goldenPods(f)
	for name, pod := range pods {
		f.Add(pod, name)
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		pod, _, err := manifest.Decode(data)
		if err != nil {
			t.Skip("no pod")
		}
		first, err := manifest.Convert(pod, references[name], goldenOptions(nil))
		second, again := manifest.Convert(pod, references[name], goldenOptions(nil))
		if err != nil {
			var refusal *manifest.Refusal
			if !errors.As(err, &refusal) || len(refusal.Findings) == 0 || again == nil || again.Error() != err.Error() {
				t.Fatalf("refused: %v, and then %v", err, again)
			}
			return
		}
		if again != nil || !bytes.Equal(first.Manifest, second.Manifest) {
			t.Error("not deterministic")
		}
		decoded, unknown, err := manifest.Decode(first.Manifest)
		if err != nil || len(unknown.Spec)+len(unknown.Elsewhere) > 0 {
			t.Fatalf("the manifest is no pod: %v %v", err, unknown)
		}
		if _, err := manifest.Convert(decoded, references[name], goldenOptions(nil)); err == nil || !strings.Contains(err.Error(), "already a") {
			t.Errorf("a checkpoint is not refused: %v", err)
		}
		if reference := apiReference(decoded); reference != "" {
			t.Errorf("it refers to the API: %s", reference)
		}
	})
}

// apiReference is what the kubelet would reject, as far as it can be seen in the JSON.
func apiReference(pod *corev1.Pod) string {
	encoded, _ := json.Marshal(pod.Spec)
	for _, field := range []string{"secretKeyRef", "configMapKeyRef", "envFrom", "serviceAccountName", "imagePullSecrets", "resourceClaims", "projected", "configMap", "secret", "csi", "persistentVolumeClaim", "ephemeral"} {
		if bytes.Contains(encoded, []byte(`"`+field+`":`)) {
			return field
		}
	}
	return ""
}

// FuzzFileName: two pods never share a file, whatever names they have.
func FuzzFileName(f *testing.F) {
	f.Add("a-b", "c", false, "a", "b-c", false)
	f.Add("kube-system", "x.y", false, "kube-system.x", "y", false)
	f.Add("a", "previous", false, "a", "previous", true)
	f.Fuzz(func(t *testing.T, namespace, name string, previous bool, otherNamespace, otherName string, otherPrevious bool) {
		for _, ns := range []string{namespace, otherNamespace} {
			if len(validation.IsDNS1123Label(ns)) > 0 {
				t.Skip("no namespace")
			}
		}
		for _, n := range []string{name, otherName} {
			if len(validation.IsDNS1123Subdomain(n)) > 0 {
				t.Skip("no pod")
			}
		}
		key := manifest.Key{Namespace: namespace, Name: name, Previous: previous}
		other := manifest.Key{Namespace: otherNamespace, Name: otherName, Previous: otherPrevious}
		if (key == other) != (key.FileName() == other.FileName()) {
			t.Errorf("%+v and %+v", key, other)
		}
	})
}

// BenchmarkConvert converts every golden pod that is accepted. The target is 1 ms and 1 MB for one.
func BenchmarkConvert(b *testing.B) {
	pods, references := goldenPods(b)
	for name, data := range pods {
		pod, _, err := manifest.Decode(data)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := manifest.Convert(pod, references[name], goldenOptions(nil)); err != nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := manifest.Convert(pod, references[name], goldenOptions(nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
