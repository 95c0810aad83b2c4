package kubelet

import (
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// fakeKubelet answers as k8s.io/kubernetes/pkg/kubelet/apis/pods does.
type fakeKubelet struct {
	podsv1.UnimplementedPodsServer
	asked chan struct{} // a token for each call

	mu     sync.Mutex
	synced bool
	pods   []*corev1.Pod
	events chan *podsv1.WatchPodsEvent // of the one stream; closed: it is cut off
}

func newFakeKubelet() *fakeKubelet {
	return &fakeKubelet{asked: make(chan struct{}, 1000), events: make(chan *podsv1.WatchPodsEvent)}
}

func (k *fakeKubelet) WatchPods(_ *podsv1.WatchPodsRequest, stream grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
	k.mu.Lock()
	synced, pods, events := k.synced, slices.Clone(k.pods), k.events
	k.mu.Unlock()
	k.asked <- struct{}{}
	if !synced {
		return status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	for _, pod := range pods {
		if err := stream.Send(event(podsv1.EventType_ADDED, pod)); err != nil {
			return err
		}
	}
	if err := stream.Send(&podsv1.WatchPodsEvent{Type: podsv1.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
		return err
	}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case e, ok := <-events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "client is too slow")
			}
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

// sync makes the kubelet one that has seen the API server.
func (k *fakeKubelet) sync(pods ...*corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced, k.pods = true, pods
}

// restart makes it one that has not.
func (k *fakeKubelet) restart() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.synced = false
}

func (k *fakeKubelet) cutOff() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.events)
	k.events = make(chan *podsv1.WatchPodsEvent)
}

func event(kind podsv1.EventType, pod *corev1.Pod) *podsv1.WatchPodsEvent {
	data, err := pod.Marshal()
	if err != nil {
		panic(err)
	}
	return &podsv1.WatchPodsEvent{Type: kind, Pod: data}
}

func podOf(uid string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "pod-" + uid, UID: types.UID(uid), Annotations: map[string]string{sourceAnnotation: "api"}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func ready(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}

// reason is why the kubelet has let a pod fail.
func reason(why string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, why }
}

func from(source string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[sourceAnnotation] = source }
}

func deleting(pod *corev1.Pod) {
	now := metav1.Now()
	pod.DeletionTimestamp = &now
}
