package kubelet_test

import (
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/sourcetest"
)

func TestKubeletConformance(t *testing.T) {
	sourcetest.TestKubelet(t, kubelet.NewFakeKubelet(t))
}

func TestOlderKubeletConformance(t *testing.T) {
	sourcetest.TestKubelet(t, kubelet.NewFakeOlderKubelet(t))
}

func TestRuntimeConformance(t *testing.T) {
	sourcetest.TestRuntime(t, kubelet.NewFakeRuntime(t))
}
