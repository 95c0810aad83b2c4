package kubelet

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

func TestTenThousandContainers(t *testing.T) {
	m := newMachine(t)
	for i := range 100 {
		m.fake.run(fmt.Sprintf("pod-%03d", i), 100, nil)
	}
	m.start(t)
	m.watch(t)
	m.await(t, "complete", func(f RuntimeFacts) bool { return len(f.Sandboxes) == 100 && len(f.Sandboxes[99].Containers) == 100 })
}

func TestNothingGrowsOverTenThousandEvents(t *testing.T) {
	m := newMachine(t)
	m.start(t)
	m.watch(t)
	receive(t, m.fake.subscribed, "subscription")
	storm := func(n int, mark string) {
		for range n {
			m.fake.queue.send(&cri.ContainerEventResponse{PodSandboxStatus: &cri.PodSandboxStatus{Id: fmt.Sprintf("gone-%d", n)}})
		}
		m.fake.startPod(mark)
		m.await(t, "past the storm", func(f RuntimeFacts) bool { return slices.Contains(readyIn(f), mark) })
	}
	storm(100, "a")
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	storm(10_000, "b")
	if after := openFiles(t); after > files {
		t.Errorf("%d open files, %d before", after, files)
	}
	if after := runtime.NumGoroutine(); after > goroutines+2 { // of the calls that are under way
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
	if m.log.count(t, "") != 1 {
		t.Errorf("log %q, want one line", m.log.messages(t))
	}
}

func TestNothingGrowsOverTenThousandEventsOfTheKubelet(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync()
	n.start(t)
	n.watch(t)
	n.awaitManaged(t)
	storm := func(events int) {
		for i := range events / 2 {
			uid := fmt.Sprintf("pod-%d", i%100)
			n.kubelet.events <- event(podsv1.EventType_ADDED, podOf(uid, ready))
			n.kubelet.events <- event(podsv1.EventType_DELETED, podOf(uid))
		}
		n.kubelet.events <- event(podsv1.EventType_ADDED, podOf("last"))
		n.awaitManaged(t, "last")
		n.kubelet.events <- event(podsv1.EventType_DELETED, podOf("last"))
		n.awaitManaged(t)
	}
	storm(100)
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	storm(10_000)
	if after := openFiles(t); after > files {
		t.Errorf("%d open files, %d before", after, files)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
	if got := n.log.messages(t); len(got) != 1 {
		t.Errorf("log %q, want one line", got)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}
