package checkpoint

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// story plays Plan against a small world: it applies every action to the disk as the store would.
type story struct {
	t      *testing.T
	w      World
	p      Policy
	states map[Lineage]State
	wake   time.Time
	did    []Action // since the last call of plan
}

const (
	web     Lineage = "default/DaemonSet/web"
	webUID  UID     = "web-uid"
	selfLin Lineage = "kube-system/DaemonSet/checkpointer"
	selfUID UID     = "self-uid"
)

var epoch = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func newStory(t *testing.T) *story {
	return &story{t: t, p: DefaultPolicy(), w: World{
		Now: epoch, Start: epoch, APISince: epoch, KubeletSince: epoch,
		Disk: Disk{Known: true}, Confirmed: map[Lineage]time.Time{},
	}}
}

// healthy is an API server that serves, a kubelet that is in sync and a runtime that answers.
func (s *story) healthy() *story {
	s.api(APIServing)
	s.kubelet(KubeletSynced)
	s.w.Runtime = RuntimeKnown
	return s
}

func (s *story) api(a API) {
	s.w.API, s.w.APISince, s.w.APICurrent = a, s.w.Now, a == APIServing
}

func (s *story) kubelet(k Kubelet) {
	s.w.Kubelet, s.w.KubeletSince = k, s.w.Now
	if k != KubeletSynced {
		s.w.Managed = nil
	} else if s.w.Managed == nil {
		s.w.Managed = map[UID]Managed{}
	}
}

// parent is a live DaemonSet pod with one container, on the pod network.
func (s *story) parent(l Lineage, uid UID) *Parent {
	s.w.Parents = append(s.w.Parents, Parent{
		UID: uid, Namespace: "default", Name: string(uid), Lineage: l, Created: s.w.Now,
		Containers: []string{"main"}, Rendering: Rendered, Manifest: "manifest of " + string(uid), Digest: "digest of " + string(uid),
	})
	return &s.w.Parents[len(s.w.Parents)-1]
}

// runs lets the kubelet run the pod, Ready.
func (s *story) runs(uid UID) {
	s.container(uid, ContainerRunning)
	s.w.Managed[uid] = Managed{Ready: true}
}

// container gives the pod a READY sandbox with its container in the state.
func (s *story) container(uid UID, state ContainerState) {
	s.stop(uid)
	s.w.Sandboxes = append(s.w.Sandboxes, Sandbox{
		ID: "sandbox of " + string(uid), UID: uid, Ready: true, Created: s.w.Now,
		Containers: []Container{{Name: "main", State: state}},
	})
}

func (s *story) stop(uid UID) {
	s.w.Sandboxes = slices.DeleteFunc(s.w.Sandboxes, func(b Sandbox) bool { return b.UID == uid })
}

// kubeletRunsStatic makes the kubelet run what lies in its static pod directory, and only that.
func (s *story) kubeletRunsStatic() {
	s.w.Sandboxes = slices.DeleteFunc(s.w.Sandboxes, func(b Sandbox) bool { return b.FromFile })
	for _, c := range s.w.Disk.Checkpoints {
		if c.Active == Intact {
			s.w.Sandboxes = append(s.w.Sandboxes, Sandbox{
				ID: "static " + c.Name, UID: "static-" + UID(c.Name), Namespace: c.Namespace, CheckpointOf: c.Name,
				FromFile: true, Ready: true, Created: s.w.Now, Containers: []Container{{Name: "main", State: ContainerRunning}},
			})
		}
	}
}

// stored puts a checkpoint of the pod on disk.
func (s *story) stored(l Lineage, uid UID) *Checkpoint {
	s.w.Disk.Checkpoints = append(s.w.Disk.Checkpoints, Checkpoint{
		Namespace: "default", Name: string(uid), Lineage: l, ParentUID: uid, Containers: []string{"main"},
		Manifest: "manifest of " + string(uid), Digest: "digest of " + string(uid), Stored: Intact, SavedAt: s.w.Now,
	})
	return &s.w.Disk.Checkpoints[len(s.w.Disk.Checkpoints)-1]
}

// powerCut loses everything but the disk, and starts the node without an API server.
func (s *story) powerCut() {
	s.w.Sandboxes, s.w.Parents, s.states = nil, nil, nil
	s.w.Start = s.w.Now
	s.api(APIUnknown)
	s.kubelet(KubeletUnknown)
	s.w.Runtime = RuntimeUnknown
	s.plan()
	s.api(APILost)
	s.kubelet(KubeletUnsynced)
	s.w.Runtime = RuntimeKnown
	s.plan()
}

// plan plans once, or twice where something must be marked first, and applies. Planning again must not ask for any of that
// again, but for what is still unanswered.
func (s *story) plan() {
	s.t.Helper()
	s.did = nil
	for range 2 {
		states, actions, wake := Plan(s.states, s.w, s.p)
		s.states, s.did, s.wake = states, append(s.did, actions...), wake
		for _, a := range actions {
			apply(&s.w, a)
		}
		if !slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == Mark }) {
			break
		}
	}
	next, again, _ := Plan(s.states, s.w, s.p)
	for _, a := range again {
		if a.Kind != Confirm && a.Kind != StepDown && slices.Contains(s.did, a) {
			s.t.Fatalf("planning again after applying %v gives %v", s.did, again)
		}
	}
	s.states = next
}

// pass lets time pass, planning whenever Plan asked for it.
func (s *story) pass(d time.Duration) {
	s.t.Helper()
	end, did := s.w.Now.Add(d), []Action(nil)
	for i := 0; !s.wake.IsZero() && !s.wake.After(end); i++ {
		if i > 1000 {
			s.t.Fatalf("Plan asks to be woken at %v again and again", s.wake)
		}
		s.w.Now = s.wake
		s.plan()
		did = append(did, s.did...)
	}
	s.w.Now = end
	s.plan()
	s.did = append(did, s.did...)
}

func (s *story) phase(l Lineage, want Phase, reason Reason) {
	s.t.Helper()
	if got := s.states[l]; got.Phase != want || got.Reason != reason {
		s.t.Fatalf("%s is %v because of %q, want %v because of %q", l, got.Phase, got.Reason, want, reason)
	}
}

func (s *story) kinds() (kinds []string) {
	for _, a := range s.did {
		if a.Kind != Mark { // what is marked shows in what is done
			kinds = append(kinds, a.Kind.String())
		}
	}
	return slices.Compact(kinds)
}

func (s *story) expect(want ...string) {
	s.t.Helper()
	if got := s.kinds(); !slices.Equal(got, want) {
		s.t.Fatalf("did %v, want %v", got, want)
	}
}

// apply does to the world what the action does to the disk.
func apply(w *World, a Action) {
	at := slices.IndexFunc(w.Disk.Checkpoints, func(c Checkpoint) bool { return c.Namespace == a.Namespace && c.Name == a.Name })
	switch a.Kind {
	case Mark:
		w.Disk.Marks = maps.Clone(w.Disk.Marks)
		if w.Disk.Marks == nil {
			w.Disk.Marks = make(map[Lineage]Marks)
		}
		w.Disk.Marks[a.Lineage] = a.Marks
		if a.Marks == (Marks{}) {
			delete(w.Disk.Marks, a.Lineage)
		}
	case Save:
		p := w.Parents[slices.IndexFunc(w.Parents, func(p Parent) bool { return p.UID == a.UID })]
		if at < 0 {
			w.Disk.Checkpoints = append(w.Disk.Checkpoints, Checkpoint{})
			at = len(w.Disk.Checkpoints) - 1
		}
		c := &w.Disk.Checkpoints[at]
		active := c.Active
		if active == Intact && c.Manifest != p.Manifest {
			active = Altered
		}
		*c = Checkpoint{
			Namespace: p.Namespace, Name: p.Name, Lineage: p.Lineage, ParentUID: p.UID, Containers: p.Containers,
			Handover: p.Handover, HostPorts: p.Handover == HandoverCreated, Ports: p.Ports, SavedAt: w.Now, Manifest: p.Manifest, Digest: p.Digest, Stored: Intact, Active: active,
		}
	case Restore:
		w.Disk.Checkpoints[at].Stored = Intact
	case Activate:
		w.Disk.Checkpoints[at].Active = Intact
	case Withdraw:
		w.Disk.Checkpoints[at].Active = Missing
	case Remove:
		if at >= 0 {
			w.Disk.Checkpoints = slices.Delete(w.Disk.Checkpoints, at, at+1)
		}
	case Prune:
		w.Disk.Checkpoints[at].Outdated = false
	case StopSandbox:
		for i := range w.Sandboxes {
			if w.Sandboxes[i].ID == a.Sandbox {
				w.Sandboxes[i].Ready = false
			}
		}
	case Kick:
		w.Sandboxes = slices.DeleteFunc(w.Sandboxes, func(b Sandbox) bool { return b.ID == a.Sandbox })
	case Confirm, Retry, StepDown: // the test answers
	}
}
