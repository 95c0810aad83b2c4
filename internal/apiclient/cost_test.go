package apiclient

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// TestOtherPodsCostNothing: of 500 pods of others, with all that the API server sends of each, next to nothing stays.
func TestOtherPodsCostNothing(t *testing.T) {
	var told []*corev1.Pod
	store := newPodStore(node, func(error) {}, func(pods []*corev1.Pod) { told = pods })
	before := heap()
	var list []any
	for i := range 500 {
		p := pod(fmt.Sprintf("other-%d", i), map[string]string{"description": strings.Repeat("x", 10_000)})
		p.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 10_000))}}
		kept, err := store.Transformer()(p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, kept)
	}
	if during := heap() - before; during > 1<<20 {
		t.Errorf("the reflector holds %d KiB of the first list", during>>10)
	}
	runtime.KeepAlive(list)
	if err := store.Replace(list, ""); err != nil {
		t.Fatal(err)
	}
	list = nil //nolint:ineffassign // so that it can be collected
	if after := heap() - before; after > 64<<10 || len(told) != 0 {
		t.Errorf("%d KiB stay, and %d pods; want nothing", after>>10, len(told))
	}
	runtime.KeepAlive(store)
}

func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestOutagesLeaveNothingBehind: neither goroutines nor open files.
func TestOutagesLeaveNothingBehind(t *testing.T) {
	s := newSite(t).direct(t)
	r := run(t, s.path)
	outage := func() {
		s.server.kill()
		r.awaitState(2*time.Second, checkpoint.APILost)
		s.server.start()
		r.awaitServing(2*time.Second, "a")
	}
	outage()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 3 {
		outage()
	}
	deadline := time.After(10 * time.Second)
	for now := runtime.NumGoroutine(); now > goroutines || openFiles(t) > files; now = runtime.NumGoroutine() {
		select {
		case <-deadline:
			t.Fatalf("%d goroutines and %d open files, before %d and %d", now, openFiles(t), goroutines, files)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestEventsLeaveNothingBehind: ten thousand of them are one watch, on one connection.
func TestEventsLeaveNothingBehind(t *testing.T) {
	s := newSite(t).direct(t)
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")
	storm := func(events int) {
		for i := range events {
			p := pod("b", asksForCheckpoint)
			p.Labels = map[string]string{"i": fmt.Sprint(i)}
			s.api.put(p)
		}
		s.api.remove("b")
		r.awaitServing(30*time.Second, "a")
	}
	storm(10)
	s.api.questions()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	storm(10_000)
	if asked := s.api.questions(); len(asked) > 0 {
		t.Errorf("it asked %v, want nothing", asked)
	}
	if after := openFiles(t); after > files {
		t.Errorf("%d open files, %d before", after, files)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines, %d before", after, goroutines)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
