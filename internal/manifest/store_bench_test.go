package manifest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// newBigNode has 30 checkpoints, each with two volumes, on a real disk.
func newBigNode(b *testing.B) *node {
	b.Helper()
	n := newNodeIn(b, b.TempDir())
	n.mountVolumes()
	n.restart()
	var pod corev1.Pod
	must(b, json.Unmarshal(n.manifest("v1"), &pod))
	for i := range 30 {
		name := fmt.Sprintf("web-%d", i)
		copied := pod.DeepCopy()
		copied.Name, copied.Annotations[AnnotationCheckpointOf] = name, name
		data, err := json.Marshal(copied)
		must(b, err)
		must(b, n.store.Save([]byte(strings.ReplaceAll(string(data), "kube-system_web/", "kube-system_"+name+"/")), n.snapshot()))
		must(b, n.store.Activate(Key{Namespace: "kube-system", Name: name}))
	}
	for settled := false; !settled; { // as on a node on which nothing happened for a while
		_, err := n.store.List()
		must(b, err)
		settled = true
		for _, r := range n.store.records {
			settled = settled && r.stored.settled && r.active.settled && r.assets != stamp{}
		}
	}
	return n
}

// What the loop does between the event of a deletion and the manifest's return.
func BenchmarkDeletedManifestBack(b *testing.B) {
	n := newBigNode(b)
	for b.Loop() {
		b.StopTimer()
		must(b, os.Remove(filepath.Join(n.dirs.Manifests, "kube-system_web-7.json")))
		b.StartTimer()
		_, err := n.store.List()
		must(b, err)
		must(b, n.store.Activate(Key{Namespace: "kube-system", Name: "web-7"}))
	}
}

// The least that a loop with the same durability does.
func BenchmarkDeletedManifestCopied(b *testing.B) {
	n := newBigNode(b)
	root, err := os.OpenRoot(n.dirs.Manifests)
	must(b, err)
	defer root.Close()
	data := n.manifest("v1")
	for b.Loop() {
		b.StopTimer()
		must(b, os.Remove(filepath.Join(n.dirs.Manifests, "kube-system_web-7.json")))
		b.StartTimer()
		must(b, replaceFile(root, "kube-system_web-7.json", data))
	}
}

func BenchmarkList(b *testing.B) {
	n := newBigNode(b)
	for b.Loop() {
		_, err := n.store.List()
		must(b, err)
	}
}
