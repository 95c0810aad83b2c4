package checkpoint

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkPlan plans for a healthy node on which nothing changes.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1, 30, 100, 10_000} {
		b.Run(fmt.Sprintf("lineages=%d", n), func(b *testing.B) {
			w, p := healthyWorld(n), DefaultPolicy()
			states, _, _ := Plan(nil, w, p)
			b.ReportAllocs()
			for b.Loop() {
				if _, actions, _ := Plan(states, w, p); len(actions) > 0 {
					b.Fatal(actions)
				}
			}
		})
	}
}

func healthyWorld(n int) World {
	w := World{
		Now: epoch, Start: epoch.Add(-time.Hour), API: APIServing, APICurrent: true, Kubelet: KubeletSynced, Runtime: RuntimeKnown,
		Managed: make(map[UID]Managed), Disk: Disk{Known: true},
	}
	for i := range n {
		uid, lineage := UID(fmt.Sprintf("uid-%d", i)), Lineage(fmt.Sprintf("kube-system/DaemonSet/%d", i))
		name := fmt.Sprintf("pod-%d", i)
		w.Parents = append(w.Parents, Parent{UID: uid, Namespace: "kube-system", Name: name, Lineage: lineage, Containers: []string{"main"}, Rendering: Rendered, Digest: "d"})
		w.Sandboxes = append(w.Sandboxes, Sandbox{ID: name, UID: uid, Namespace: "kube-system", Name: name, Ready: true, Containers: []Container{{"main", ContainerRunning}}})
		w.Managed[uid] = Managed{Ready: true}
		w.Disk.Checkpoints = append(w.Disk.Checkpoints, Checkpoint{Namespace: "kube-system", Name: name, Lineage: lineage, ParentUID: uid, Containers: []string{"main"}, Digest: "d", Stored: Intact, SavedAt: epoch})
	}
	return w
}
