package sourcetest

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// APIServer is what apiclient watches.
type APIServer interface {
	Process
	Kubeconfig() string                                  // path of a node's
	NodeName() string                                    // of that node
	CreateParent(ctx context.Context, name string) error // a pod on the node that asks for a checkpoint
	CreateOther(ctx context.Context, name string) error  // one that does not
	DeletePod(ctx context.Context, name string) error    // returns when it is gone
	Pause() error                                        // as SIGSTOP does
	Resume() error                                       // as SIGCONT does
}

// TestAPIServer holds apiclient to the API server.
func TestAPIServer(t *testing.T, s APIServer) {
	client, err := apiclient.New(apiclient.Config{Kubeconfig: s.Kubeconfig(), NodeName: s.NodeName()}, logger(t))
	must(t, err)
	facts := watch(t, client.Run)
	serving := func(within time.Duration, present []string, absent ...string) {
		t.Helper()
		facts.await(t, within, "serving", func(f apiclient.Facts) bool {
			has := func(name string) bool {
				return slices.ContainsFunc(f.Pods, func(p *corev1.Pod) bool { return p.Name == name })
			}
			missing := func(name string) bool { return !has(name) }
			return f.State == checkpoint.APIServing && f.Current && f.Pods != nil &&
				!slices.ContainsFunc(present, missing) && !slices.ContainsFunc(absent, has)
		})
	}
	lost := func(within time.Duration) {
		t.Helper()
		f := facts.await(t, within, "lost", func(f apiclient.Facts) bool { return f.State == checkpoint.APILost })
		if f.Current || f.Pods == nil {
			t.Errorf("while it is lost, the pods are %v, current %v; want the last known ones, not current", f.Pods, f.Current)
		}
	}

	serving(5*time.Second, nil)
	must(t, s.CreateParent(t.Context(), "conformance-a"))
	must(t, s.CreateOther(t.Context(), "conformance-other"))
	serving(time.Second, []string{"conformance-a"}, "conformance-other")
	must(t, s.CreateParent(t.Context(), "conformance-b"))
	serving(time.Second, []string{"conformance-a", "conformance-b"})
	must(t, s.DeletePod(t.Context(), "conformance-a"))
	serving(time.Second, []string{"conformance-b"}, "conformance-a")

	pods, err := client.LivePods(t.Context())
	must(t, err)
	if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Name == "conformance-other" }) {
		t.Error("a live list does not have every pod of the node")
	}

	must(t, s.Kill(t.Context()))
	lost(time.Second)
	must(t, s.Start(t.Context()))
	serving(2*time.Second, []string{"conformance-b"}, "conformance-a")

	must(t, s.Pause())
	lost(10 * time.Second)
	must(t, s.Resume())
	serving(2*time.Second, []string{"conformance-b"})
	must(t, s.DeletePod(t.Context(), "conformance-b"))
	must(t, s.DeletePod(t.Context(), "conformance-other"))
}
