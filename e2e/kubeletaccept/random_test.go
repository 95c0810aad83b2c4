package kubeletaccept

import (
	"bytes"
	"flag"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

var (
	count = flag.Uint64("pods", 20_000, "how many pods are generated")
	start = flag.Uint64("seed", 0, "seed of the first; one failing seed: -seed N -pods 1")
)

// TestGeneratedPods converts pods that an API server would accept: those that nothing speaks against are accepted by the
// kubelet and run in the environment that their parents have, and the others are refused for the right reason.
func TestGeneratedPods(t *testing.T) {
	const batch = 1000
	var refused uint64
	for first := *start; first < *start+*count; first += batch {
		judgments := make(map[string]*judgment)
		for seed := first; seed < min(first+batch, *start+*count); seed++ {
			if j := generated(t, seed); j != nil {
				judgments[fmt.Sprintf("seed %d", seed)] = j
			} else {
				refused++
			}
		}
		judge(t, judgments, func(t *testing.T, j *judgment) {
			sameEnvironment(t, j)
			sameMountPoints(t, j)
		})
		if t.Failed() {
			t.FailNow() // the first batch tells enough
		}
	}
	t.Logf("%d pods from seed %d: %d accepted by the kubelet, %d refused by us", *count, *start, *count-refused, refused)
}

// generated converts the pod of a seed, and gives it a name that no other has: it is in one directory with them.
func generated(t *testing.T, seed uint64) *judgment {
	t.Helper()
	c, err := generate.New(seed)
	if err != nil {
		t.Fatal(err)
	}
	c.Pod.Name = fmt.Sprintf("%s-%d", c.Pod.Name, seed)
	before := c.Pod.DeepCopy()
	j, refusal := convert(c.Pod, c.References, options)
	if !equality.Semantic.DeepEqual(before, c.Pod) {
		t.Errorf("seed %d: Convert changed its input", seed)
	}
	switch {
	case c.Spoiled == "" && refusal != nil:
		t.Errorf("seed %d: refused for no reason: %v", seed, refusal)
	case c.Spoiled != "" && refusal == nil:
		t.Errorf("seed %d: not refused, for all its %s", seed, c.Spoiled)
	case refusal != nil && !strings.Contains(refusal.Error(), c.Spoiled):
		t.Errorf("seed %d: refused, but not for its %s: %v", seed, c.Spoiled, refusal)
	case refusal == nil:
		checkPure(t, seed, c, j)
		return j
	}
	return nil
}

// checkPure converts again, and converts what came out.
func checkPure(t *testing.T, seed uint64, c generate.Case, j *judgment) {
	t.Helper()
	again, refusal := convert(c.Pod, c.References, options)
	if refusal != nil || !bytes.Equal(again.result.Manifest, j.result.Manifest) {
		t.Errorf("seed %d: not deterministic", seed)
	}
	if _, refusal := convert(j.result.Pod, manifest.References{}, options); refusal == nil || !strings.Contains(refusal.Error(), "already a checkpoint") {
		t.Errorf("seed %d: a checkpoint is not refused: %v", seed, refusal)
	}
}
