//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/sourcetest"
)

// TestConformance holds the checkpointer's sources to the real things, by the suite that the fakes of its unit tests run.
// The checkpointer itself does not run here.
func TestConformance(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node, err := lab.StartNode(ctx, cluster, lab.NodeOptions{})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if node != nil {
			if err := node.Close(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := cluster.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	pods := realPods{cluster}
	if err := pods.possible(ctx); err != nil {
		t.Fatal(err)
	}
	t.Run("API server", func(t *testing.T) { sourcetest.TestAPIServer(t, realServer{pods, cluster.APIServer}) })
	t.Run("container runtime", func(t *testing.T) { sourcetest.TestRuntime(t, realRuntime{pods, node.Containerd}) })
	t.Run("kubelet", func(t *testing.T) {
		if _, err := os.Stat(lab.KubeletDir + "/pods-api"); err != nil {
			t.Logf("not run: a kubelet before 1.37 has no Pods API (%v)", err)
			return
		}
		sourcetest.TestKubelet(t, realKubelet{pods, node.Kubelet})
	})
}

// realPods makes pods on the node, past the scheduler.
type realPods struct{ cluster *lab.Cluster }

// possible waits until pods can be made: a new namespace gets its service account a moment later.
func (p realPods) possible(ctx context.Context) error {
	return lab.Wait(ctx, "the default service account", func(ctx context.Context) error {
		_, err := p.cluster.Client().CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	}, p.cluster.ControllerManager)
}

func (p realPods) create(ctx context.Context, name string, annotations map[string]string) (checkpoint.UID, error) {
	seconds := int64(0)
	made, err := p.cluster.Client().CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.PodSpec{
			NodeName: lab.NodeName, TerminationGracePeriodSeconds: &seconds,
			Containers: []corev1.Container{{Name: "witness", Image: lab.WitnessImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--listen=:8080"}}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return checkpoint.UID(made.UID), nil
}

func (p realPods) CreateParent(ctx context.Context, name string) error {
	_, err := p.create(ctx, name, map[string]string{"checkpointer.alpha.coreos.com/checkpoint": "true"})
	return err
}

func (p realPods) CreateOther(ctx context.Context, name string) error {
	_, err := p.create(ctx, name, nil)
	return err
}

func (p realPods) CreatePod(ctx context.Context, name string) (checkpoint.UID, error) {
	return p.create(ctx, name, nil)
}

func (p realPods) DeletePod(ctx context.Context, name string) error {
	pods := p.cluster.Client().CoreV1().Pods("default")
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return lab.Wait(ctx, "pod "+name+" to be gone", func(ctx context.Context) error {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the API server still has it (%v)", err)
	})
}

type realServer struct {
	realPods
	*lab.Component
}

func (realServer) Kubeconfig() string { return lab.KubeletKubeconfig }
func (realServer) NodeName() string   { return lab.NodeName }

type realRuntime struct {
	realPods
	*lab.Component
}

func (realRuntime) Endpoint() string { return "unix://" + lab.ContainerdSocket }

type realKubelet struct {
	realPods
	*lab.Component
}

func (realKubelet) Dir() string { return lab.KubeletDir }
