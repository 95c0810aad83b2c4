package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// apart is how often a sandbox of a parent is stopped at most.
const apart = 500 * time.Millisecond

// kicks is how often a parent that was handed its port is kicked at most.
const kicks = 5

// Handed is a hand-over of ports of the node to a parent.
type Handed struct {
	UID      UID
	At       time.Time
	Kicks    int
	KickedAt time.Time
	Tried    bool // a container of it was seen to start, or to run, while nothing of the checkpoint was left
}

// taker is the pod that has come furthest in taking over from an active checkpoint; nil if none has begun to.
func (v *view) taker(marks Marks) (taker *Parent) {
	for i := range v.parents {
		p := &v.parents[i]
		if p.Deleting || p.Phase != PodLive || !v.taken(p) {
			continue
		}
		if taker == nil || cmp.Or(promise(p, marks)-promise(taker, marks), int(v.progress(p))-int(v.progress(taker))) > 0 {
			taker = p
		}
	}
	return taker
}

// handOver withdraws the active checkpoint.
func (s *step) handOver() {
	if s.next.Reason == ReasonParentCreated {
		s.next.Handed = Handed{UID: s.taker(s.next.Marks).UID, At: s.Now}
		s.due(s.Now.Add(s.policy.HandoverTimeout))
	}
	if p := s.parent; s.next.Reason == ReasonParentBlocked && p.Phase != PodLive {
		s.next.Marks.Stuck = p.UID
	}
	s.next.Phase = Leaving
	if s.stopped(s.active) {
		s.next.Phase = Stored
	}
	if s.active.Active != Missing {
		s.emit(Action{Kind: Withdraw, Reason: s.next.Reason}, s.active)
	}
	s.keepApart(s.active)
}

// keepApart stops the parent's sandbox for as long as anything of a checkpoint runs that must not run beside it. The
// kubelet makes another one at once.
func (s *step) keepApart(c *Checkpoint) {
	if c.Handover != HandoverExclusive || s.Runtime == RuntimeUnknown || s.stopped(c) {
		return
	}
	s.next.StoppedAt = s.prev.StoppedAt
	if !s.anySandbox() || !s.due(s.prev.StoppedAt.Add(apart)) {
		return
	}
	s.next.StoppedAt = s.Now
	for _, uid := range s.uids() {
		if sandbox := s.sandbox(uid); sandbox != nil {
			s.emit(Action{Kind: StopSandbox, Sandbox: sandbox.ID, Reason: ReasonParentAppeared}, c)
		}
	}
}

// kick has the kubelet start the parent again at once whose container failed because the checkpoint still held its port:
// after the container's own exit it would wait for 10 s, its back-off; a new sandbox starts without. Not to wait for the
// checkpoint's end before the hand-over pays: a process may free its port long before it exits.
func (s *step) kick() {
	h := &s.next.Handed
	if h.UID == "" || s.active != nil || s.Runtime == RuntimeUnknown || h.Kicks >= kicks {
		return
	}
	sandbox := s.sandbox(h.UID)
	if sandbox == nil || !sandbox.failed(s.required(h.UID)) || !s.due(h.KickedAt.Add(apart)) {
		return
	}
	h.Kicks, h.KickedAt = h.Kicks+1, s.Now
	s.emit(Action{Kind: Kick, Sandbox: sandbox.ID, Reason: ReasonPortWasHeld}, s.current)
}

// starts says whether one of the containers is about to run, or runs.
func (s *Sandbox) starts(required []string) bool {
	return slices.ContainsFunc(required, func(name string) bool {
		return s.has(name, func(state ContainerState) bool { return state == ContainerCreated || state == ContainerRunning })
	})
}

// failed says whether a container that must run has exited and was not made again.
func (s *Sandbox) failed(required []string) bool {
	exited := func(state ContainerState) bool { return state == ContainerExited }
	other := func(state ContainerState) bool { return state != ContainerExited }
	return slices.ContainsFunc(required, func(name string) bool { return s.has(name, exited) && !s.has(name, other) })
}
