package kubelet

import (
	"maps"
	"slices"
	"sync"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// anySandbox is no sandbox's ID, and no filter for one: it may be any.
	anySandbox = ""
	// manyTouched is from when on one list of everything is cheaper than one for each sandbox.
	manyTouched = 8
)

// touched collects the IDs of the sandboxes that events are about. Its drain never waits for anybody: in containerd 2, a
// reader that falls behind holds up the starts of every container on the node
// (github.com/containerd/containerd/v2/internal/eventq.publish). It stays small, whatever happens.
type touched struct {
	some  chan struct{} // holds a token while there are any
	ended chan error    // why the stream ended

	mu  sync.Mutex
	ids map[string]bool
}

func newTouched() *touched {
	return &touched{some: make(chan struct{}, 1), ended: make(chan error, 1), ids: make(map[string]bool)}
}

// drain reads the stream to its end.
func (t *touched) drain(stream cri.RuntimeService_GetContainerEventsClient) {
	for {
		event, err := stream.Recv()
		if err != nil {
			t.ended <- err
			return
		}
		t.add(event.GetPodSandboxStatus().GetId()) // the runtime may send no status, as for what is gone
		select {
		case t.some <- struct{}{}:
		default:
		}
	}
}

func (t *touched) add(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ids) >= manyTouched {
		clear(t.ids)
		id = anySandbox
	}
	if !t.ids[anySandbox] {
		t.ids[id] = true
	}
}

func (t *touched) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := slices.Collect(maps.Keys(t.ids))
	clear(t.ids)
	return ids
}
