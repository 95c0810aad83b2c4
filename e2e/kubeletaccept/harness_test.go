package kubeletaccept

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

var options = manifest.Options{
	AssetsDir:      "/etc/kubernetes/checkpoint-assets",
	NodeName:       generate.NodeName,
	KubeletVersion: "v1.37.2",
	AgentImage:     "example.com/checkpointer:1",
	ServiceHost:    "10.96.0.1",
	ServicePort:    "443",
}

// judgment is a parent, its checkpoint, and the checkpoint as the kubelet decoded it.
type judgment struct {
	parent  *corev1.Pod
	refs    manifest.References
	result  manifest.Result
	decoded *corev1.Pod
}

// judge lets the kubelet read the manifests, all in one directory, and calls check on each that it accepted. A rejected
// one is an error. The keys are the file names.
func judge(t *testing.T, judgments map[string]*judgment, check func(t *testing.T, j *judgment)) {
	t.Helper()
	dir := t.TempDir()
	for name, j := range judgments {
		if err := os.WriteFile(filepath.Join(dir, name), j.result.Manifest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	verdicts, err := kubelet.Read(ctx, dir, generate.NodeName)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range verdicts.Rejected {
		t.Errorf("%s: the kubelet rejects it: %v\n%s", name, err, judgments[name].result.Manifest)
	}
	if len(verdicts.Pods)+len(verdicts.Rejected) != len(judgments) {
		t.Errorf("the kubelet accepts %d and rejects %d of %d manifests", len(verdicts.Pods), len(verdicts.Rejected), len(judgments))
	}
	byName := make(map[string]*corev1.Pod)
	for _, pod := range verdicts.Pods {
		byName[pod.Namespace+"/"+kubelet.ParentName(pod, generate.NodeName)] = pod
	}
	for name, j := range judgments {
		if j.decoded = byName[j.result.Pod.Namespace+"/"+j.result.Pod.Name]; j.decoded == nil {
			continue // rejected
		}
		for _, problem := range facts(j) {
			t.Errorf("%s: %s", name, problem)
		}
		if check != nil {
			check(t, j)
		}
	}
}

// convert returns nil if the pod is refused.
func convert(parent *corev1.Pod, refs manifest.References, options manifest.Options) (*judgment, *manifest.Refusal) {
	result, err := manifest.Convert(parent, refs, options)
	if refusal := (*manifest.Refusal)(nil); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		panic(fmt.Sprintf("an error that is no refusal: %v", err))
	}
	return &judgment{parent: parent, refs: refs, result: result}, nil
}
