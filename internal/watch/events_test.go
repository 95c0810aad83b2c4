package watch

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// fakeEvents keeps what it is told.
type fakeEvents struct {
	mu   sync.Mutex
	told []apiclient.Event
}

func (f *fakeEvents) Tell(e apiclient.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, e)
}

func (f *fakeEvents) reasons(pod string) (reasons []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.told {
		if e.Pod == pod {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

func TestEventsTellTheStoryOfAPod(t *testing.T) {
	onNode(t, func(n *node) {
		events := new(fakeEvents)
		withEvents := func(c *Config) { c.Events = events }
		n.boot(withEvents)
		web, odd := daemonPod("web"), daemonPod("odd")
		class := "kata"
		odd.Spec.RuntimeClassName = &class
		n.healthy(web, odd)
		n.powerCut(withEvents)
		n.api(checkpoint.APIServing, web)
		n.running(web)
		n.synced(web)
		n.pass(time.Minute)
		want := []string{eventStored, eventActivated, eventHandedOver}
		if got := events.reasons(web.Name); !slices.Equal(got, want) {
			t.Errorf("of the pod: %q, want %q\n%s", got, want, n.log)
		}
		if got := events.reasons(odd.Name); !slices.Equal(got, []string{eventRefused}) {
			t.Errorf("of the pod that can't be checkpointed: %q", got)
		}
	})
}

func TestSecretsThatAreRotatedAreNoEvent(t *testing.T) {
	onNode(t, func(n *node) {
		events := new(fakeEvents)
		n.boot(func(c *Config) { c.Events = events })
		web := withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.healthy(web)
		n.mount(web, "two")
		n.loop.VolumeChanges.Put(map[checkpoint.UID]bool{checkpoint.UID(web.UID): true})
		n.pass(time.Minute)
		if got := events.reasons(web.Name); !slices.Equal(got, []string{eventStored}) {
			t.Errorf("told %q", got)
		}
	})
}
