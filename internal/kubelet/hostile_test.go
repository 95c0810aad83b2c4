package kubelet

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// strangeKubelet answers each question in a way of the test's.
type strangeKubelet struct {
	podsv1.UnimplementedPodsServer
	answer func(grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error
	asked  chan struct{}
}

func (k strangeKubelet) WatchPods(_ *podsv1.WatchPodsRequest, stream grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
	k.asked <- struct{}{}
	return k.answer(stream)
}

func TestStrangeKubeletIsUnknown(t *testing.T) {
	endlessly := func(next func(i int) *podsv1.WatchPodsEvent) func(grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
		return func(stream grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
			for i := 0; ; i++ {
				if err := stream.Send(next(i)); err != nil {
					return err
				}
			}
		}
	}
	for name, answer := range map[string]func(grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error{
		"that hangs": func(stream grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
			<-stream.Context().Done()
			return stream.Context().Err()
		},
		"that never comes to the end of its list": endlessly(func(int) *podsv1.WatchPodsEvent { return event(podsv1.EventType_ADDED, podOf("a")) }),
		"with more pods than there can be":        endlessly(func(i int) *podsv1.WatchPodsEvent { return event(podsv1.EventType_ADDED, podOf(fmt.Sprint(i))) }),
		"with a UID as long as a book": endlessly(func(int) *podsv1.WatchPodsEvent {
			return event(podsv1.EventType_ADDED, podOf(strings.Repeat("x", 1<<20)))
		}),
		"with a pod that is none": endlessly(func(int) *podsv1.WatchPodsEvent {
			return &podsv1.WatchPodsEvent{Type: podsv1.EventType_ADDED, Pod: []byte("\xff\xff\xff")}
		}),
		"with more than a message may hold": endlessly(func(int) *podsv1.WatchPodsEvent {
			return &podsv1.WatchPodsEvent{Type: podsv1.EventType_ADDED, Pod: make([]byte, maxMessage+1)}
		}),
		"that ends at once": func(grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, true)
			n.pods.patience = 300 * time.Millisecond
			k := strangeKubelet{answer: answer, asked: make(chan struct{}, 1000)}
			stop := serve(t, filepath.Join(n.dir, "pods-api", "pods-api.sock"), func(s grpc.ServiceRegistrar) { podsv1.RegisterPodsServer(s, k) })
			source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) })
			facts := n.awaitState(t, checkpoint.KubeletUnknown)
			if facts.Managed != nil || facts.Evicted != nil {
				t.Errorf("unknown, and yet %+v", facts)
			}
			for range 4 {
				receive(t, k.asked, "question")
			}
			if got := n.log.messages(t); len(got) != 1 {
				t.Errorf("log %q, want one line", got)
			}
			stop()
			n.pods.patience = patience
			n.kubelet.sync(podOf("a"))
			n.start(t)
			n.pods.Kick()
			n.awaitManaged(t, "a")
		})
	}
}

func TestPodsOfAKubeletHaveALimit(t *testing.T) {
	known := newKnown()
	for i := range maxPods + 2 {
		if err := known.fold(event(podsv1.EventType_ADDED, podOf(fmt.Sprint(i)))); err != nil {
			if i < maxPods {
				t.Errorf("%d pods are too many: %v", i, err)
			}
			return
		}
	}
	t.Error("there is none")
}

// TestNothingOfAKubelet: events without a pod, pods without anything, an end of the list that comes twice.
func TestNothingOfAKubelet(t *testing.T) {
	n := newNode(t, true)
	n.kubelet.sync()
	n.start(t)
	n.watch(t)
	n.awaitManaged(t)
	for _, e := range []*podsv1.WatchPodsEvent{
		{},
		{Type: podsv1.EventType_ADDED},
		{Type: podsv1.EventType_DELETED},
		{Type: podsv1.EventType_INITIAL_SYNC_COMPLETE},
		event(podsv1.EventType_ADDED, new(corev1.Pod)), event(podsv1.EventType_DELETED, new(corev1.Pod)),
		event(podsv1.EventType_DELETED, podOf("never-heard-of")),
	} {
		n.kubelet.events <- e
	}
	n.kubelet.events <- event(podsv1.EventType_ADDED, podOf("a"))
	n.awaitManaged(t, "a")
	if got := n.log.messages(t); len(got) != 1 {
		t.Errorf("log %q, want one line", got)
	}
}

// TestSocketOfSomethingElse: what listens there does not speak gRPC, or does not speak.
func TestSocketOfSomethingElse(t *testing.T) {
	for name, speak := range map[string]func(net.Conn){
		"that hangs up": func(c net.Conn) {},
		"of the web":    func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"that babbles": func(c net.Conn) {
			for _, err := c.Write([]byte("0123456789abcdef")); err == nil; _, err = c.Write([]byte("0123456789abcdef")) {
			}
		},
		"that is silent": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)); _, _ = c.Read(make([]byte, 1<<20)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, n := newMachine(t), newNode(t, true)
			m.timeout, n.pods.patience = 200*time.Millisecond, 200*time.Millisecond
			var stops []func()
			for _, socket := range []string{filepath.Join(m.dir, "cri.sock"), filepath.Join(n.pods.directory, "pods-api.sock")} {
				listener, err := net.Listen("unix", socket)
				must(t, err)
				done := make(chan struct{})
				go func() {
					defer close(done)
					for {
						conn, err := listener.Accept()
						if err != nil {
							return
						}
						go func() { speak(conn); conn.Close() }()
					}
				}()
				stops = append(stops, func() { listener.Close(); <-done })
			}
			m.watch(t)
			source(t, func(ctx context.Context) { n.pods.Run(ctx, n.add) })
			m.awaitUnknown(t)
			n.awaitState(t, checkpoint.KubeletUnknown)
			for _, stop := range stops {
				stop()
			}
			m.start(t)
			m.await(t, "known", func(f RuntimeFacts) bool { return f.State == checkpoint.RuntimeKnown })
			n.kubelet.sync(podOf("a"))
			n.start(t)
			n.pods.Kick()
			n.awaitManaged(t, "a")
		})
	}
}

// TestMoreThanARuntimeMayAnswer is beyond the kubelet's own limit, too.
func TestMoreThanARuntimeMayAnswer(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 1, map[string]string{"big": strings.Repeat("x", maxMessage)})
	m.start(t)
	m.watch(t)
	m.awaitUnknown(t)
	m.fake.set(func(f *fakeRuntime) { f.run("a", 1, nil) })
	m.awaitReady(t, "a")
}

// TestNothingOfARuntime: sandboxes and containers without metadata, of no sandbox, in states that are unknown.
func TestNothingOfARuntime(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 1, nil)
	m.fake.sandboxes["nothing"] = new(cri.PodSandbox)
	m.fake.sandboxes["strange"] = &cri.PodSandbox{Id: "strange", State: 99, CreatedAt: -1 << 63}
	m.fake.containers["nothing"] = new(cri.Container)
	m.fake.containers["strange"] = &cri.Container{Id: "strange", PodSandboxId: "strange", State: 99}
	m.fake.containers["lost"] = &cri.Container{Id: "lost", PodSandboxId: "nobody"}
	m.start(t)
	m.watch(t)
	facts := m.awaitReady(t, "", "a")
	if got := facts.Sandboxes[2].Containers[0].State; got != checkpoint.ContainerUnknown {
		t.Errorf("a state that nobody knows is %v", got)
	}
	m.fake.queue.send(new(cri.ContainerEventResponse))
	m.fake.queue.send(&cri.ContainerEventResponse{PodSandboxStatus: new(cri.PodSandboxStatus)})
	m.fake.startPod("b")
	m.awaitReady(t, "", "a", "b")
}

// TestFloodOfEventsTakesNoMemory: what is collected of them stays small, also with names as long as a book.
func TestFloodOfEventsTakesNoMemory(t *testing.T) {
	touched := newTouched()
	before := heapBytes()
	for i := range 10_000 {
		touched.add(fmt.Sprintf("%d-%s", i, strings.Repeat("x", 10_000)))
	}
	if grown := heapBytes() - before; grown > 1<<20 {
		t.Errorf("%d KiB are kept of the events", grown>>10)
	}
	if ids := touched.take(); len(ids) != 1 || ids[0] != anySandbox {
		t.Errorf("%d sandboxes are looked at, want one look at all", len(ids))
	}
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func FuzzEventOfTheKubelet(f *testing.F) {
	for _, pod := range []*corev1.Pod{podOf("a", ready), podOf("b", reason("Evicted"), deleting), new(corev1.Pod)} {
		for kind := range podsv1.EventType_name {
			f.Add(int32(kind), event(podsv1.EventType(kind), pod).Pod)
		}
	}
	f.Fuzz(func(t *testing.T, kind int32, pod []byte) {
		known := newKnown()
		if err := known.fold(&podsv1.WatchPodsEvent{Type: podsv1.EventType(kind), Pod: pod}); err != nil {
			return
		}
		for uid := range known.evicted {
			if _, ok := known.managed[uid]; ok {
				t.Errorf("%q is managed and evicted", uid)
			}
		}
		if len(known.managed)+len(known.evicted) > 1 {
			t.Errorf("one event makes %+v", known)
		}
		err := known.fold(&podsv1.WatchPodsEvent{Type: podsv1.EventType_DELETED, Pod: pod})
		if err == nil && len(known.managed)+len(known.evicted) > 0 {
			t.Errorf("deleted, and there is %+v", known)
		}
	})
}

func FuzzListsOfTheRuntime(f *testing.F) {
	fake := newFakeRuntime()
	fake.run("a", 2, nil)
	sandboxes, err := fake.ListPodSandbox(context.Background(), new(cri.ListPodSandboxRequest))
	if err != nil {
		f.Fatal(err)
	}
	containers, err := fake.ListContainers(context.Background(), new(cri.ListContainersRequest))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(marshal(f, sandboxes), marshal(f, containers))
	f.Add([]byte("\n\x00\n\x00"), []byte("\n\x00"))
	f.Fuzz(func(t *testing.T, sandboxData, containerData []byte) {
		sandboxes, containers := new(cri.ListPodSandboxResponse), new(cri.ListContainersResponse)
		if unmarshal(sandboxData, sandboxes) != nil || unmarshal(containerData, containers) != nil {
			return
		}
		found, n := join(sandboxes.Items, containers.Containers), 0
		for id, s := range found {
			n += len(s.Containers)
			if s.ID != id {
				t.Errorf("sandbox %q is found as %q", s.ID, id)
			}
		}
		if len(found) > len(sandboxes.Items) || n > len(containers.Containers) {
			t.Errorf("%d sandboxes and %d containers of %d and %d", len(found), n, len(sandboxes.Items), len(containers.Containers))
		}
		exited, down := exitedOf(containers.Containers)
		if down && len(exited) == 0 || len(exited) > len(containers.Containers) {
			t.Errorf("exited %q, down %v", exited, down)
		}
	})
}

// marshal and unmarshal are as gRPC does it.
func marshal(f *testing.F, message any) []byte {
	data, err := encoding.GetCodecV2("proto").Marshal(message)
	if err != nil {
		f.Fatal(err)
	}
	return data.Materialize()
}

func unmarshal(data []byte, into any) error {
	return encoding.GetCodecV2("proto").Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, into)
}
