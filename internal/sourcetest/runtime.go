package sourcetest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
)

// Runtime is what kubelet.Runtime watches.
type Runtime interface {
	Process
	Endpoint() string
	CreatePod(ctx context.Context, name string) (checkpoint.UID, error) // of one container, from the API, running in a moment
	DeletePod(ctx context.Context, name string) error
}

// TestRuntime holds kubelet.Runtime to the container runtime.
func TestRuntime(t *testing.T, r Runtime) {
	runtime := kubelet.NewRuntime(r.Endpoint(), 10*time.Second, logger(t))
	facts := watch(t, runtime.Run)
	known := func(within time.Duration, what string, wanted func([]checkpoint.Sandbox) bool) (found []checkpoint.Sandbox) {
		t.Helper()
		return facts.await(t, within, what, func(f kubelet.RuntimeFacts) bool {
			return f.State == checkpoint.RuntimeKnown && wanted(f.Sandboxes)
		}).Sandboxes
	}

	known(5*time.Second, "known", func([]checkpoint.Sandbox) bool { return true })
	uid, err := r.CreatePod(t.Context(), "conformance")
	must(t, err)
	runs := func(s checkpoint.Sandbox) bool {
		return s.UID == uid && s.Ready && !s.FromFile && s.CheckpointOf == "" && s.Name != "" && !s.Created.IsZero() &&
			slices.ContainsFunc(s.Containers, func(c checkpoint.Container) bool { return c.State == checkpoint.ContainerRunning && c.Name != "" })
	}
	running := func(all []checkpoint.Sandbox) bool { return slices.ContainsFunc(all, runs) }
	all := known(slowly, "running the pod", running)
	id := all[slices.IndexFunc(all, runs)].ID

	for range 2 {
		must(t, r.Kill(t.Context()))
		facts.await(t, time.Second, "unknown", func(f kubelet.RuntimeFacts) bool {
			return f.State == checkpoint.RuntimeUnknown && f.Sandboxes == nil
		})
		must(t, r.Start(t.Context()))
		known(5*time.Second, "running it still", running)
	}

	must(t, runtime.StopSandbox(t.Context(), id))
	known(slowly, "stopped", func(all []checkpoint.Sandbox) bool {
		return !slices.ContainsFunc(all, func(s checkpoint.Sandbox) bool { return s.ID == id && s.Ready })
	})
	must(t, r.DeletePod(t.Context(), "conformance"))
	known(slowly, "running it no more", func(all []checkpoint.Sandbox) bool {
		return !slices.ContainsFunc(all, func(s checkpoint.Sandbox) bool { return s.UID == uid && s.Ready })
	})
}
