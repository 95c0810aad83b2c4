package sourcetest

import (
	"context"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
)

// Kubelet is what kubelet.Pods watches, while an API server serves.
type Kubelet interface {
	Process
	Dir() string
	// Tell has pods told, until ctx ends, what the API server and the container runtime say: an older kubelet tells names.
	Tell(ctx context.Context, pods *kubelet.Pods)
	CreatePod(ctx context.Context, name string) (checkpoint.UID, error) // that asks for a checkpoint, ready in a moment
	DeletePod(ctx context.Context, name string) error                   // returns when it is gone
}

// slowly is how long something may take that others do, such as the start of a pod.
const slowly = time.Minute

// TestKubelet holds kubelet.Pods to the kubelet.
func TestKubelet(t *testing.T, k Kubelet) {
	log := logger(t)
	pods := kubelet.NewPods(k.Dir(), log)
	pods.APIServing(true)
	volumes := kubelet.NewVolumes(pods, log) // it tells when the socket is there
	watch(t, func(ctx context.Context, _ func(struct{})) { volumes.Run(ctx, func(checkpoint.UID) {}) })
	watch(t, func(ctx context.Context, _ func(struct{})) { k.Tell(ctx, pods) })
	facts := watch(t, pods.Run)
	managed := func(within time.Duration, what string, wanted func(map[checkpoint.UID]checkpoint.Managed) bool) {
		t.Helper()
		facts.await(t, within, what, func(f kubelet.PodsFacts) bool {
			return f.State == checkpoint.KubeletSynced && wanted(f.Managed)
		})
	}

	managed(slowly, "synced", func(map[checkpoint.UID]checkpoint.Managed) bool { return true })
	uid, err := k.CreatePod(t.Context(), "conformance")
	must(t, err)
	has := func(m map[checkpoint.UID]checkpoint.Managed) bool { return m[uid].Ready }
	managed(slowly, "managing a ready pod", has)

	for range 2 {
		must(t, k.Kill(t.Context()))
		facts.await(t, time.Second, "unknown", func(f kubelet.PodsFacts) bool {
			return f.State == checkpoint.KubeletUnknown && f.Managed == nil
		})
		must(t, k.Start(t.Context()))
		managed(slowly, "managing it again", has)
	}

	must(t, k.DeletePod(t.Context(), "conformance"))
	managed(slowly, "managing it no more", func(m map[checkpoint.UID]checkpoint.Managed) bool {
		_, ok := m[uid]
		return !ok
	})
}
