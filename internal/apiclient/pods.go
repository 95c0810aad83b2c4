package apiclient

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// lasting is how long a watch must have lived for the server not to be one that comes and goes.
const lasting = 5 * time.Second

// Limits of what a node may have to tell: far above what any has, so that a server which is out of its mind is not
// followed into the lack of memory, or waited for for ever.
const (
	longestList = time.Minute
	maxPods     = 10_000
)

var (
	errSlowList = errors.New("the list of our pods does not come to its end")
	errTooMany  = errors.New("the list of our pods has more than a node can have")
)

// watchPods lists this node's pods and watches them until that ends, for whatever reason. It says whether it went well.
func (c *Client) watchPods(ctx context.Context) bool {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.mu.Lock()
	c.endWatch = end
	c.mu.Unlock()

	start, listed := time.Now(), false
	slow := time.AfterFunc(longestList, func() { end(errSlowList) })
	defer slow.Stop()
	store := newPodStore(c.config.NodeName, end, func(pods []*corev1.Pod) {
		if !listed {
			listed = true
			slow.Stop()
			c.sayUsable(true, nil) // before it is told, so that whoever acts on it finds the line in the log
		}
		c.learned(ctx, pods)
	})
	reflector := cache.NewReflectorWithOptions(c.source(end), &corev1.Pod{}, store, cache.ReflectorOptions{Name: "pods of this node"})
	err := reflector.ListAndWatchWithContext(ctx)
	c.log.Debug().Err(err).AnErr("cause", context.Cause(ctx)).Msg("watch of the pods ended")
	c.unwatched()
	if !listed {
		c.sayUsable(false, errors.Join(err, context.Cause(ctx)))
	}
	return listed && time.Since(start) > lasting
}

// podStore is what the reflector keeps up to date: the pods of this node that ask for a checkpoint.
type podStore struct {
	node    string
	end     context.CancelCauseFunc // of the watch
	changed func([]*corev1.Pod)

	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod
	listed bool // the first list was complete
	seen   int  // of the first list
}

var _ cache.TransformingStore = (*podStore)(nil)

func newPodStore(node string, end context.CancelCauseFunc, changed func([]*corev1.Pod)) *podStore {
	return &podStore{node: node, end: end, changed: changed, pods: make(map[types.UID]*corev1.Pod)}
}

func (s *podStore) Add(obj any) error    { return s.fold(obj, false) }
func (s *podStore) Update(obj any) error { return s.fold(obj, false) }
func (s *podStore) Delete(obj any) error { return s.fold(obj, true) }
func (s *podStore) Resync() error        { return nil }

func (s *podStore) Replace(list []any, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.pods)
	for _, obj := range list {
		if pod, ok := obj.(*corev1.Pod); ok && s.wants(pod) {
			s.pods[pod.UID] = trimmed(pod)
		}
	}
	s.listed = true
	s.tell()
	return nil
}

// fold takes in one event. One that is about no pod of ours, and never was, is nobody's business.
func (s *podStore) fold(obj any, gone bool) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.pods[pod.UID]
	switch {
	case !gone && s.wants(pod):
		s.pods[pod.UID] = trimmed(pod)
	case known:
		delete(s.pods, pod.UID)
	default:
		return nil
	}
	s.tell()
	return nil
}

// wants does not trust the selector of the request alone.
func (s *podStore) wants(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == s.node && manifest.IsParent(pod)
}

func (s *podStore) tell() {
	if !s.listed {
		return
	}
	pods := slices.AppendSeq(make([]*corev1.Pod, 0, len(s.pods)), maps.Values(s.pods)) // not nil, which would be: not listed
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	s.changed(pods)
}

// Transformer keeps the rest out of the reflector's own store, too, which holds the first list until it is complete.
func (s *podStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		s.count()
		if pod, ok := obj.(*corev1.Pod); ok {
			return trimmed(pod), nil
		}
		return obj, nil
	}
}

func (s *podStore) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen++; !s.listed && s.seen > maxPods {
		s.end(errTooMany)
	}
}

// trimmed drops what nobody reads of a pod: who manages which field, and how each container is, which the kubelet and
// the container runtime know better; and of a pod that asks for no checkpoint, everything.
func trimmed(pod *corev1.Pod) *corev1.Pod {
	if !manifest.IsParent(pod) {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	}
	pod.ManagedFields = nil
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses = nil, nil, nil
	return pod
}
