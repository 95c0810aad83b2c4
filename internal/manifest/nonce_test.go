package manifest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// activeNonce is what the kubelet reads in the active manifest.
func (n *node) activeNonce() string {
	n.t.Helper()
	data, err := os.ReadFile(n.active())
	must(n.t, err)
	var pod corev1.Pod
	must(n.t, json.Unmarshal(data, &pod))
	return pod.Annotations[AnnotationNonce]
}

func TestRetryChangesTheNonceAndNothingElse(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	if nonce := n.activeNonce(); nonce != "" {
		t.Errorf("a nonce before any retry: %q", nonce)
	}
	for _, want := range []string{"1", "2", "3"} {
		must(t, n.store.Retry(web))
		if nonce := n.activeNonce(); nonce != want {
			t.Errorf("the nonce is %q, want %q", nonce, want)
		}
		n.wantFiles(checkpoint.Intact, checkpoint.Intact)
	}
	data, err := os.ReadFile(n.active())
	must(t, err)
	if manifest, nonce := withoutNonce(data); nonce != 3 || !bytes.Equal(manifest, n.manifest("v1")) {
		t.Errorf("without the nonce %d it is\n%s", nonce, manifest)
	}
	n.activate()
	n.save("v1")
	n.restart()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
	n.activate()
	if nonce := n.activeNonce(); nonce != "3" {
		t.Errorf("written again, though it was intact: the nonce is %q", nonce)
	}
	must(t, n.store.Retry(web))
	if nonce := n.activeNonce(); nonce != "4" {
		t.Errorf("after a restart the next nonce is %q", nonce)
	}
}

// The kubelet goes by the content: a deleted manifest that comes back as it was is the same pod.
func TestDeletedManifestComesBackWithItsNonce(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	must(t, n.store.Retry(web))
	must(t, os.Remove(n.active()))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
	n.activate()
	if nonce := n.activeNonce(); nonce != "1" {
		t.Errorf("the nonce is %q", nonce)
	}
	must(t, n.store.Withdraw(web))
	n.activate()
	if nonce := n.activeNonce(); nonce != "" {
		t.Errorf("after a withdrawal the nonce is %q", nonce)
	}
}

// The active copy stands in for a lost stored one, to the byte.
func TestStoredManifestIsRestoredWithoutTheNonce(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	must(t, n.store.Retry(web))
	digest := n.list().Digest
	must(t, os.Remove(n.stored()))
	n.restart()
	n.wantFiles(checkpoint.Missing, checkpoint.Intact)
	must(t, n.store.Restore(web))
	if data, err := os.ReadFile(n.stored()); err != nil || !bytes.Equal(data, n.manifest("v1")) {
		t.Errorf("restored %s, %v", data, err)
	}
	if got := n.list().Digest; got != digest {
		t.Errorf("the digest was %s and is %s", digest, got)
	}
}

// Whatever else is called annotations, and whatever is written in them, the nonce goes where the kubelet looks.
func TestNonceGoesIntoTheAnnotationsOfThePod(t *testing.T) {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   "web",
			Labels: map[string]string{"annotations": "x", AnnotationNonce: "7"},
			Annotations: map[string]string{
				`"annotations": {`: `{"annotations": {"` + AnnotationNonce + `": "5",}}`, AnnotationCheckpointOf: "web",
			},
		},
	}
	manifest, err := encode(pod)
	must(t, err)
	if got, nonce := withoutNonce(manifest); nonce != 0 || !bytes.Equal(got, manifest) {
		t.Errorf("found the nonce %d in a manifest without one", nonce)
	}
	data := withNonce(manifest, 12)
	var got corev1.Pod
	must(t, json.Unmarshal(data, &got))
	if got.Annotations[AnnotationNonce] != "12" || len(got.Annotations) != 3 || got.Labels[AnnotationNonce] != "7" {
		t.Errorf("it went elsewhere:\n%s", data)
	}
	if back, nonce := withoutNonce(data); nonce != 12 || !bytes.Equal(back, manifest) {
		t.Errorf("the way back gives %d and\n%s", nonce, back)
	}
}
