package kubeletaccept

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// corpusDir is a folder of pods of public projects, which are not ours to copy. CORPUS names another place.
func corpusDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CORPUS")
	if dir == "" {
		dir = "../../../shared/corpus"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("NOT TESTED: the real pods of public projects. Their folder is not here: %v", err)
	}
	return dir
}

// TestCorpus holds the conversion of real pods to the verdicts of the corpus, to the kubelet, to corpusFacts, and to what
// we see differently.
func TestCorpus(t *testing.T) {
	dir := corpusDir(t)
	verdicts, facts := readExpected(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "pods", "*.json"))
	if err != nil || len(files) != len(verdicts) {
		t.Errorf("%d pods and %d verdicts (%v)", len(files), len(verdicts), err)
	}
	refs := readReferences(t, dir)
	judgments := make(map[string]*judgment)
	for _, file := range files {
		name := filepath.Base(file)
		var pod corev1.Pod
		readJSON(t, file, &pod)
		j, refusal := convert(&pod, refs, options)
		reason, refused := strings.CutPrefix(verdicts[name], "refuse: ")
		switch {
		case verdicts[name] == "":
			t.Errorf("%s: no verdict", name)
		case refused != (refusal != nil):
			t.Errorf("%s: the verdict is %q, and the refusal %v", name, verdicts[name], refusal)
		case refused && !strings.Contains(refusal.Error(), refusalText(reason)):
			t.Errorf("%s: refused, but not because of %q: %v", name, reason, refusal)
		case !refused:
			judgments[name] = j
		}
	}
	judge(t, judgments, sameEnvironment)
	for name, check := range corpusFacts {
		t.Run(name, func(t *testing.T) {
			if judgments[name] == nil {
				t.Fatal("no such checkpoint")
			}
			check(t, judgments[name])
		})
	}
	for _, d := range seenDifferently {
		t.Run(d.file+": "+d.theirs, func(t *testing.T) {
			if !strings.Contains(facts[d.file], d.theirs) {
				t.Errorf("the corpus no longer says so, but: %s", facts[d.file])
			}
			if judgments[d.file] == nil {
				t.Fatal("no such checkpoint")
			}
			t.Log("instead:", d.ours)
			d.check(t, judgments[d.file])
		})
	}
	t.Logf("%d real pods: %d accepted by the kubelet, %d refused", len(files), len(judgments), len(files)-len(judgments))
}

// refusalText is what a refusal must say, from the first words of a verdict.
func refusalText(reason string) string {
	word, _, _ := strings.Cut(reason, " ")
	if word == "already" {
		return "already a static pod"
	}
	return word
}

// With the annotation, host ports survive, as the corpus has it for 28 and 29. Without it they go, and a warning says so.
func TestCorpusKeepsHostPorts(t *testing.T) {
	dir := corpusDir(t)
	judgments := make(map[string]*judgment)
	for name, want := range map[string][]int32{"28-ingress-nginx-hostport.json": {80, 443, 10254}, "29-ingress-nginx-kind.json": {80, 443}, "53-datadog.json": {8126}} {
		var pod corev1.Pod
		readJSON(t, filepath.Join(dir, "pods", name), &pod)
		without, _ := convert(&pod, readReferences(t, dir), options)
		if warned(without, manifest.AnnotationKeepHostPorts) != len(want) {
			t.Errorf("%s: the warnings are %v", name, without.result.Warnings)
		}
		pod.Annotations[manifest.AnnotationKeepHostPorts] = "true"
		with, refusal := convert(&pod, readReferences(t, dir), options)
		if refusal != nil {
			t.Fatal(refusal)
		}
		judgments[name] = with
		var got []int32
		visit(with.result.Pod, func(c *corev1.Container) {
			for _, port := range c.Ports {
				if port.HostPort != 0 {
					got = append(got, port.HostPort)
				}
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: host ports %v, want %v", name, got, want)
		}
	}
	judge(t, judgments, nil)
}

func warned(j *judgment, about string) int {
	var count int
	for _, warning := range j.result.Warnings {
		if strings.Contains(warning.String(), about) {
			count++
		}
	}
	return count
}

// readExpected reads the second and the third column of expected.tsv.
func readExpected(t *testing.T, dir string) (verdicts, facts map[string]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "expected.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, facts = make(map[string]string), make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if columns := strings.Split(line, "\t"); len(columns) > 2 && strings.HasSuffix(columns[0], ".json") {
			verdicts[columns[0]], facts[columns[0]] = columns[1], columns[2]
		}
	}
	return verdicts, facts
}

func readReferences(t *testing.T, dir string) manifest.References {
	t.Helper()
	var configMaps corev1.ConfigMapList
	var secrets corev1.SecretList
	readJSON(t, filepath.Join(dir, "configmaps.json"), &configMaps)
	readJSON(t, filepath.Join(dir, "secrets.json"), &secrets)
	refs := manifest.References{ConfigMaps: make(map[string]*corev1.ConfigMap), Secrets: make(map[string]*corev1.Secret)}
	for i := range configMaps.Items {
		refs.ConfigMaps[configMaps.Items[i].Name] = &configMaps.Items[i]
	}
	for i := range secrets.Items {
		refs.Secrets[secrets.Items[i].Name] = &secrets.Items[i]
	}
	return refs
}

func readJSON(t *testing.T, file string, object any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, object)
	}
	if err != nil {
		t.Fatal(err)
	}
}
