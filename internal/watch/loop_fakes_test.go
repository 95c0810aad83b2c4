package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

var errFake = errors.New("fake failure")

// fakeCluster counts what it is asked. It can fail, and it can hang until it is no longer asked.
type fakeCluster struct {
	mu      sync.Mutex
	calls   map[string]int
	pods    []*corev1.Pod
	nodeUID string
	value   string // of every key of every ConfigMap
	err     error
	hang    bool
	open    int // calls that have not returned
}

func (c *fakeCluster) set(change func(*fakeCluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *fakeCluster) asked(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

func (c *fakeCluster) answer(ctx context.Context, call string) error {
	c.mu.Lock()
	c.calls[call]++
	c.open++
	hang, err := c.hang, c.err
	c.mu.Unlock()
	defer c.set(func(c *fakeCluster) { c.open-- })
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (c *fakeCluster) References(ctx context.Context, pod *corev1.Pod) (manifest.References, error) {
	err := c.answer(ctx, "references")
	c.mu.Lock()
	defer c.mu.Unlock()
	maps := make(map[string]*corev1.ConfigMap)
	for _, need := range manifest.Needs(pod) {
		maps[need.Name] = &corev1.ConfigMap{Data: map[string]string{"key": c.value}}
	}
	return manifest.References{ConfigMaps: maps}, err
}

func (c *fakeCluster) Surroundings(ctx context.Context) (apiclient.Surroundings, error) {
	err := c.answer(ctx, "surroundings")
	return apiclient.Surroundings{ServiceHost: "10.96.0.1", ServicePort: "443", KubeletVersion: "v1.37.2"}, err
}

func (c *fakeCluster) LivePods(ctx context.Context) ([]*corev1.Pod, error) {
	err := c.answer(ctx, "pods")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pods, err
}

func (c *fakeCluster) NodeUID(ctx context.Context) (string, error) {
	err := c.answer(ctx, "node")
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodeUID, err
}

type fakeKubelet struct{}

func (fakeKubelet) Kick()           {}
func (fakeKubelet) APIServing(bool) {}

type fakeVolumes struct{ watched map[checkpoint.UID][]string }

func (v *fakeVolumes) Watch(pods map[checkpoint.UID][]string) { v.watched = pods }

type fakeDisk struct{ watched []string }

func (d *fakeDisk) Watch(dirs []string) { d.watched = dirs }

// fakeRuntime stops nothing, and says that it did.
type fakeRuntime struct {
	mu      sync.Mutex
	stopped []string
}

func (r *fakeRuntime) StopSandbox(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = append(r.stopped, id)
	return nil
}

func (r *fakeRuntime) Kick(ctx context.Context, id string) error { return r.StopSandbox(ctx, id) }

// daemonPod is a pod of the DaemonSet name that asks for a checkpoint, runs, and is Ready.
func daemonPod(name string) *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: name + "-x7k2p", UID: types.UID("uid-" + name), ResourceVersion: "1",
			Annotations:     map[string]string{manifest.AnnotationCheckpoint: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, UID: types.UID("set-" + name), Controller: &controller}},
		},
		Spec: corev1.PodSpec{
			NodeName:      "node1",
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "main", Image: "example.com/" + name + ":1"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// changed is the pod in a later version.
func changed(pod *corev1.Pod, version string, change func(*corev1.Pod)) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.ResourceVersion = version
	change(pod)
	return pod
}

// withEnv gives a pod a variable from a ConfigMap.
func withEnv(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "SETTING", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "key"},
	}}}
	return pod
}

// withVolume gives a pod a volume from a ConfigMap.
func withVolume(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}},
	}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/config"}}
	return pod
}

func (n *node) volumeOf(pod *corev1.Pod) string {
	return filepath.Join(n.kubelet, "pods", string(pod.UID), "volumes", "kubernetes.io~configmap", "config")
}

// mount fills the volume of a pod as the kubelet does.
func (n *node) mount(pod *corev1.Pod, content string) {
	n.t.Helper()
	dir := n.volumeOf(pod)
	must(n.t, os.MkdirAll(dir, 0o755))
	version, err := os.MkdirTemp(dir, "..2026_")
	must(n.t, err)
	must(n.t, os.WriteFile(filepath.Join(version, "file"), []byte(content), 0o644))
	must(n.t, os.Symlink(filepath.Base(version), filepath.Join(dir, "..data_tmp")))
	must(n.t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
}
