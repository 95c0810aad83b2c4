package apiclient

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// watchPods lists this node's pods and watches them until the server stops serving or ctx ends. It says whether the
// list was ever complete.
func (c *Client) watchPods(ctx context.Context) (listed bool) {
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.mu.Lock()
	c.stopWatch = stop
	c.mu.Unlock()

	store := &podStore{node: c.config.NodeName, pods: make(map[types.UID]*corev1.Pod), changed: func(pods []*corev1.Pod) {
		listed = true
		c.update(func(f *Facts) { f.Pods, f.Current = pods, true })
	}}
	source := cache.NewListWatchFromClient(c.client(), "pods", corev1.NamespaceAll, fields.OneTermEqualSelector("spec.nodeName", c.config.NodeName))
	reflector := cache.NewReflectorWithOptions(source, &corev1.Pod{}, store, cache.ReflectorOptions{Name: "pods of this node"})
	err := reflector.ListAndWatchWithContext(watching)
	c.log.Debug().Err(err).AnErr("cause", context.Cause(watching)).Msg("watch of the pods ended")
	c.update(func(f *Facts) { f.Current = false })
	return listed
}

// podStore is what the reflector keeps up to date. Only what is needed of a pod stays in memory.
type podStore struct {
	node    string
	changed func([]*corev1.Pod)

	mu   sync.Mutex
	pods map[types.UID]*corev1.Pod
	full bool // the first list was complete
}

var _ cache.TransformingStore = (*podStore)(nil)

func (s *podStore) Add(obj any) error    { return s.put(obj) }
func (s *podStore) Update(obj any) error { return s.put(obj) }
func (s *podStore) Resync() error        { return nil }

func (s *podStore) put(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod := s.own(obj); pod != nil {
		s.pods[pod.UID] = pod
		s.tell()
	}
	return nil
}

func (s *podStore) Delete(obj any) error {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if pod, ok := obj.(*corev1.Pod); ok {
		delete(s.pods, pod.UID)
		s.tell()
	}
	return nil
}

func (s *podStore) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods = make(map[types.UID]*corev1.Pod, len(list))
	for _, obj := range list {
		if pod := s.own(obj); pod != nil {
			s.pods[pod.UID] = pod
		}
	}
	s.full = true
	s.tell()
	return nil
}

// Transformer lets the reflector's own temporary store drop the same.
func (s *podStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if pod, ok := obj.(*corev1.Pod); ok {
			return trim(pod), nil
		}
		return obj, nil
	}
}

// own is the trimmed pod if it is of this node: the selector of the request is not trusted alone.
func (s *podStore) own(obj any) *corev1.Pod {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == s.node {
		return trim(pod)
	}
	return nil
}

func (s *podStore) tell() {
	if s.full {
		s.changed(slices.SortedFunc(maps.Values(s.pods), func(a, b *corev1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) }))
	}
}

// trim drops what nobody reads: of a pod that does not ask for a checkpoint, everything but its name.
func trim(pod *corev1.Pod) *corev1.Pod {
	pod.ManagedFields = nil
	if manifest.IsParent(pod) {
		return pod
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName},
	}
}
