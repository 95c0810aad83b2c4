package checkpoint

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// TestDoubledFactsChangeNothing: an event that comes twice says nothing new.
func TestDoubledFactsChangeNothing(t *testing.T) {
	for seed := range uint64(10_000) {
		prev, w, p := random(rand.New(rand.NewPCG(seed, 1)))
		_, actions, wake := Plan(prev, w, p)
		doubled := w
		doubled.Parents, doubled.Sandboxes = slices.Repeat(w.Parents, 2), slices.Repeat(w.Sandboxes, 2)
		_, actions2, wake2 := Plan(prev, doubled, p)
		actions2 = slices.Compact(actions2) // to do one twice does no harm
		if !reflect.DeepEqual(actions, actions2) || !wake.Equal(wake2) {
			t.Fatalf("seed %d: %v, and with doubled facts %v", seed, actions, actions2)
		}
	}
}

// TestPlanLeavesItsInputAlone: what it is given is the loop's, which compares with it later.
func TestPlanLeavesItsInputAlone(t *testing.T) {
	for seed := range uint64(2_000) {
		prev, w, p := random(rand.New(rand.NewPCG(seed, 2)))
		prev2, w2, _ := random(rand.New(rand.NewPCG(seed, 2)))
		Plan(prev, w, p)
		if !reflect.DeepEqual(prev, prev2) || !reflect.DeepEqual(w, w2) {
			t.Fatalf("seed %d: the world or the states have changed", seed)
		}
	}
}

// TestUnknownDestroysNothing holds for each source by itself, whatever the others say.
func TestUnknownDestroysNothing(t *testing.T) {
	for seed := range uint64(20_000) {
		prev, w, p := random(rand.New(rand.NewPCG(seed, 3)))
		for _, c := range []struct {
			what   string
			forget func(*World)
			bad    func(Action) bool
		}{
			{"API server", func(w *World) { w.API, w.APICurrent = APIUnknown, false }, func(a Action) bool {
				return a.Kind == Confirm || a.Reason == ReasonRemovalConfirmed || a.Reason == ReasonRemovalStopping
			}},
			{"runtime", func(w *World) { w.Runtime, w.Sandboxes = RuntimeUnknown, nil }, func(a Action) bool {
				return a.Kind == StopSandbox || a.Kind == Kick || a.Kind == Retry ||
					a.Lineage != p.Self && (a.Kind == Remove || a.Kind == Withdraw && a.Reason != ReasonSucceeded && a.Reason != ReasonRemovalStopping)
			}},
			{"kubelet", func(w *World) { w.Kubelet, w.KubeletSince, w.Managed = KubeletUnknown, w.Now, nil }, func(a Action) bool {
				return a.Kind == Retry || a.Kind == Withdraw && slices.Contains([]Reason{ReasonParentReady, ReasonParentCreated, ReasonParentAppeared, ReasonParentNotReady}, a.Reason)
			}},
			{"disk", func(w *World) { w.Disk = Disk{} }, func(Action) bool { return true }},
		} {
			unknown := w
			c.forget(&unknown)
			_, actions, _ := Plan(prev, unknown, p)
			if i := slices.IndexFunc(actions, c.bad); i >= 0 {
				t.Fatalf("seed %d: %v (%s) of %s, and the %s is unknown", seed, actions[i].Kind, actions[i].Reason, actions[i].Name, c.what)
			}
		}
	}
}

// TestOnlyAConfirmedGoneRemoves: whatever takes the place of an Unknown, if it is not confirmed that a lineage is gone, no
// plan removes more than with the Unknown.
func TestOnlyAConfirmedGoneRemoves(t *testing.T) {
	for seed := range uint64(5_000) {
		r := rand.New(rand.NewPCG(seed, 4))
		prev, w, p := random(r)
		w.API, w.APICurrent, w.Confirmed = APIUnknown, false, map[Lineage]time.Time{}
		_, actions, _ := Plan(prev, w, p)
		before := removals(actions)
		for api := APIUnknown; api <= APILost; api++ {
			for kubelet := KubeletUnknown; kubelet <= KubeletAbsent; kubelet++ {
				w.API, w.APICurrent, w.Kubelet = api, api == APIServing, kubelet
				if _, actions, _ := Plan(prev, w, p); removals(actions) > before {
					t.Fatalf("seed %d: API %v, kubelet %v: %v", seed, api, kubelet, actions)
				}
			}
		}
	}
}

// What was listed before the API server was away decides nothing, however long the new list takes.
func TestListFromBeforeIsNotTakenForThePresentOne(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.w.APICurrent = false
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonAPIListing)
	s.w.APICurrent = true
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect("activate")
}

func TestPodIsUpOnlyWhenAllOfItsContainersRun(t *testing.T) {
	s := newStory(t).healthy()
	s.parent(web, webUID).Containers = []string{"main", "sidecar"}
	s.runs(webUID)
	s.plan()
	s.expect()
	b := &s.w.Sandboxes[len(s.w.Sandboxes)-1]
	b.Containers = append(b.Containers, Container{Name: "sidecar", State: ContainerRunning})
	s.plan()
	s.expect("save")
}
