//go:build linux

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/sourcetest"
)

// TestConformance holds the checkpointer's sources to the real things, by the suite that the fakes of its unit tests run.
// The checkpointer itself does not run here. KUBE_VERSION=1.34.4 has it run against a kubelet without the Pods API, which
// is asked by podresources, and an API server of that version.
func TestConformance(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	t.Run("WatchList", func(t *testing.T) {
		cluster, node := conformanceSite(ctx, t, lab.ClusterOptions{})
		pods := realPods{cluster}
		t.Run("API server", func(t *testing.T) { sourcetest.TestAPIServer(t, realServer{pods, cluster.APIServer}) })
		t.Run("container runtime", func(t *testing.T) { sourcetest.TestRuntime(t, realRuntime{pods, node.Containerd}) })
		t.Run("kubelet", func(t *testing.T) { sourcetest.TestKubelet(t, realKubelet{pods, node.Kubelet}) })
		t.Run("kick", func(t *testing.T) { kick(ctx, t, pods, node) })
	})
	t.Run("no WatchList", func(t *testing.T) {
		cluster, _ := conformanceSite(ctx, t, lab.ClusterOptions{APIServerArgs: []string{"--feature-gates=WatchList=false"}})
		sourcetest.TestAPIServer(t, realServer{realPods{cluster}, cluster.APIServer})
	})
}

// conformanceSite is a cluster and its node until the end of the test.
func conformanceSite(ctx context.Context, t *testing.T, o lab.ClusterOptions) (*lab.Cluster, *lab.Node) {
	t.Helper()
	cluster, err := lab.StartCluster(ctx, o)
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
	if err := (realPods{cluster}).possible(ctx); err != nil {
		t.Fatal(err)
	}
	return cluster, node
}

// kick has a container end twice. After the first time the kubelet starts it again at once, after the second it would wait
// for ten seconds.
func kick(ctx context.Context, t *testing.T, pods realPods, node *lab.Node) {
	runtime := kubelet.NewRuntime("unix://"+lab.ContainerdSocket, 10*time.Second, zerolog.New(zerolog.NewTestWriter(t)))
	if _, err := pods.CreatePod(ctx, "kicked"); err != nil {
		t.Fatal(err)
	}
	// running waits until a container of the pod runs that is none of these.
	running := func(but ...*cri.Container) (found *cri.Container) {
		t.Helper()
		err := lab.Wait(ctx, "a container that runs", func(ctx context.Context) (err error) {
			found, err = node.RunningContainer(ctx, "default", "kicked", "witness")
			if err == nil && slices.ContainsFunc(but, func(c *cri.Container) bool { return c.Id == found.Id }) {
				err = fmt.Errorf("%s runs still", found.Id)
			}
			return err
		}, node.Kubelet, node.Containerd)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := running()
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	step(runtime.Kick(ctx, first.PodSandboxId)) // nothing has exited
	step(node.EndContainer(ctx, first))
	second := running(first)
	if second.PodSandboxId != first.PodSandboxId {
		t.Error("the sandbox was stopped though its container ran")
	}
	step(runtime.Kick(ctx, second.PodSandboxId)) // what had exited was started again
	step(node.EndContainer(ctx, second))
	begin := time.Now()
	step(runtime.Kick(ctx, second.PodSandboxId))
	third := running(first, second)
	t.Logf("it runs again %.2f s after the kick", time.Since(begin).Seconds())
	if third.PodSandboxId == second.PodSandboxId {
		t.Error("the kick did not stop the sandbox")
	}
	step(pods.DeletePod(ctx, "kicked"))
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
	_, err := p.create(ctx, name, asksForCheckpoint)
	return err
}

func (p realPods) CreateOther(ctx context.Context, name string) error {
	_, err := p.create(ctx, name, nil)
	return err
}

// CreatePod makes a parent, because of others the API server is not asked whether they are ready.
func (p realPods) CreatePod(ctx context.Context, name string) (checkpoint.UID, error) {
	return p.create(ctx, name, asksForCheckpoint)
}

var asksForCheckpoint = map[string]string{"checkpointer.alpha.coreos.com/checkpoint": "true"}

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

// Tell does what the agent does.
func (k realKubelet) Tell(ctx context.Context, pods *kubelet.Pods) {
	var sources sync.WaitGroup
	defer sources.Wait()
	client, err := apiclient.New(apiclient.Config{Kubeconfig: lab.KubeletKubeconfig, NodeName: lab.NodeName}, zerolog.Nop())
	if err != nil {
		panic(err) // the file is the kubelet's own, which has read it
	}
	sources.Go(func() { client.Run(ctx, func(f apiclient.Facts) { pods.SawPods(f.Pods) }) })
	sources.Go(func() {
		kubelet.NewRuntime("unix://"+lab.ContainerdSocket, 10*time.Second, zerolog.Nop()).Run(ctx, pods.SawRuntime)
	})
}
