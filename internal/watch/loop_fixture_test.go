package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// node is a loop on a node: its directories are real, what it asks is fake, and its sources are the test.
type node struct {
	t       *testing.T
	dirs    manifest.Dirs
	kubelet string // its --root-dir
	cluster *fakeCluster
	log     *logBuffer
	loop    *Loop
	volumes *fakeVolumes
	watch   fakeDisk
	runtime *fakeRuntime
	stop    func() // ends the loop and waits for it
}

// onNode runs a test on a node in a bubble. The bubble fails a test that leaves a goroutine behind.
func onNode(t *testing.T, test func(*node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		n := &node{
			t:       t,
			dirs:    manifest.Dirs{Manifests: filepath.Join(dir, "manifests"), Inactive: filepath.Join(dir, "inactive"), Assets: filepath.Join(dir, "assets")},
			kubelet: filepath.Join(dir, "kubelet"),
			cluster: &fakeCluster{nodeUID: "node-uid", calls: make(map[string]int)},
			log:     new(logBuffer),
		}
		must(t, os.Mkdir(n.dirs.Manifests, 0o700))
		n.boot(nil)
		defer func() { n.stop() }()
		test(n)
	})
}

// boot starts the loop anew, as after a power cut or a crash.
func (n *node) boot(change func(*Config)) {
	n.t.Helper()
	if n.stop != nil {
		n.stop()
	}
	store, err := manifest.OpenStore(n.dirs)
	must(n.t, err)
	n.volumes, n.runtime = new(fakeVolumes), new(fakeRuntime)
	config := Config{
		Policy:     checkpoint.DefaultPolicy(),
		Namespaces: []string{"kube-system"},
		KubeletDir: n.kubelet,
		Options:    manifest.Options{AssetsDir: n.dirs.Assets, NodeName: "node1"},
		Store:      store,
		Cluster:    n.cluster,
		Kubelet:    fakeKubelet{},
		Volumes:    n.volumes,
		Disk:       &n.watch,
		Runtime:    n.runtime,
		Log:        zerolog.New(n.log),
	}
	if change != nil {
		change(&config)
	}
	n.loop = NewLoop(config)
	ctx, cancel := context.WithCancel(n.t.Context())
	done := make(chan struct{})
	go func() { n.loop.Run(ctx); close(done) }()
	n.stop = func() { cancel(); <-done }
	n.diskChanged()
}

// diskChanged is what the watch of the directories tells. It returns when the loop has nothing left to do now.
func (n *node) diskChanged() {
	n.loop.Directories.Put(map[string]bool{everywhere: true})
	synctest.Wait()
}

// api is what the API server says.
func (n *node) api(state checkpoint.API, pods ...*corev1.Pod) {
	n.loop.API.Put(apiclient.Facts{State: state, Current: state == checkpoint.APIServing, Pods: pods})
	synctest.Wait()
}

// apiGone is an API server that answers no more.
func (n *node) apiGone() {
	n.loop.API.Put(apiclient.Facts{State: checkpoint.APILost})
	synctest.Wait()
}

// synced is a kubelet that manages pods, all of them Ready.
func (n *node) synced(pods ...*corev1.Pod) {
	managed := make(map[checkpoint.UID]checkpoint.Managed)
	for _, pod := range pods {
		managed[checkpoint.UID(pod.UID)] = checkpoint.Managed{Ready: true}
	}
	n.loop.KubeletPods.Put(kubelet.PodsFacts{State: checkpoint.KubeletSynced, Managed: managed})
	synctest.Wait()
}

func (n *node) unsynced() {
	n.loop.KubeletPods.Put(kubelet.PodsFacts{State: checkpoint.KubeletUnsynced})
	synctest.Wait()
}

// running is what the container runtime runs: the given pods, each with all of its containers.
func (n *node) running(pods ...*corev1.Pod) {
	var sandboxes []checkpoint.Sandbox
	for _, pod := range pods {
		s := checkpoint.Sandbox{
			ID: "sandbox-" + string(pod.UID), UID: checkpoint.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
			Ready: true, Created: time.Now(),
		}
		for _, c := range pod.Spec.Containers {
			s.Containers = append(s.Containers, checkpoint.Container{Name: c.Name, State: checkpoint.ContainerRunning})
		}
		sandboxes = append(sandboxes, s)
	}
	n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeKnown, Sandboxes: sandboxes})
	synctest.Wait()
}

// runningCheckpoint is what the container runtime runs when the kubelet has taken up the pod's active manifest.
func (n *node) runningCheckpoint(pod *corev1.Pod) {
	n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeKnown, Sandboxes: []checkpoint.Sandbox{{
		ID: "static-" + pod.Name, UID: "hash", Namespace: pod.Namespace, Name: pod.Name, CheckpointOf: pod.Name, FromFile: true, Ready: true,
		Containers: []checkpoint.Container{{Name: pod.Spec.Containers[0].Name, State: checkpoint.ContainerRunning}},
	}}})
	synctest.Wait()
}

// healthy is a node on which pods run for the API server.
func (n *node) healthy(pods ...*corev1.Pod) {
	n.cluster.set(func(c *fakeCluster) { c.pods = pods })
	n.running(pods...)
	n.synced(pods...)
	n.api(checkpoint.APIServing, pods...)
	n.diskChanged()
}

// powerCut boots with an API server that can't be reached. Everything is known before any time passes.
func (n *node) powerCut(change func(*Config)) {
	n.boot(change)
	n.running()
	n.unsynced()
	n.apiGone()
}

// pass lets time pass, and tells how often the loop planned meanwhile.
func (n *node) pass(d time.Duration) (plans int) {
	n.t.Helper()
	synctest.Wait()
	logged := n.since()
	time.Sleep(d)
	synctest.Wait()
	return len(logged(func(l line) bool { return l.Message == "planned" }))
}

func (n *node) active(pod *corev1.Pod) string {
	return filepath.Join(n.dirs.Manifests, manifest.Key{Namespace: pod.Namespace, Name: pod.Name}.FileName())
}

func (n *node) stored(pod *corev1.Pod) string {
	return filepath.Join(n.dirs.Inactive, manifest.Key{Namespace: pod.Namespace, Name: pod.Name}.FileName())
}

func (n *node) wantFile(path string) {
	n.t.Helper()
	if _, err := os.Stat(path); err != nil {
		n.t.Fatalf("%v\n%s", err, n.log)
	}
}

func (n *node) wantNoFile(path string) {
	n.t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		n.t.Fatalf("%s is there, or can't be looked for: %v\n%s", path, err, n.log)
	}
}

// line is a line of the log.
type line struct {
	Level, Message, Action, Pod, Reason, From, To, Error, Question, Path, Problem string
}

func (l line) isLoud() bool { return l.Level != "debug" }

// logBuffer keeps a log.
type logBuffer struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// since forgets what was logged until now. The function that it returns gives what was logged since, if keep is true of it.
func (n *node) since() func(keep func(line) bool) []line {
	start := len(n.log.String())
	return func(keep func(line) bool) (kept []line) {
		n.t.Helper()
		for text := range bytes.SplitSeq([]byte(n.log.String()[start:]), []byte("\n")) {
			var l line
			if len(text) == 0 {
				continue
			}
			must(n.t, json.Unmarshal(text, &l))
			if keep(l) {
				kept = append(kept, l)
			}
		}
		return kept
	}
}
