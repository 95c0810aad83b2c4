package checkpoint

import "time"

// step decides for one lineage.
type step struct {
	*view
	prev        State
	others      []*view   // every lineage's
	unscheduled bool      // the checkpointer itself is to leave this node
	started     time.Time // when the kubelet last started a static pod

	next    State
	actions []Action
	wake    time.Time
}

func (s *step) decide() {
	s.next.Up = s.anyUp()
	s.next.GoneSince = s.goneSince()
	s.noteReady()
	s.judge()
	s.save()
	switch {
	case s.remove():
		return
	case s.current == nil:
		s.settle(Absent, hold(ReasonNoCheckpoint))
		if s.parent == nil && !s.self() {
			s.next = State{} // nothing is left to remember
		}
		return
	}
	s.repair()
	switch {
	case s.self():
		s.staySelf()
		return
	case s.prev.Phase == Active || s.active != nil:
		s.stayActive()
	default:
		s.stayStored()
	}
	s.kick()
	s.clean()
	s.prune()
}

// stayStored keeps a stored checkpoint until the table says to activate it.
func (s *step) stayStored() {
	phase := Stored
	if s.prev.Phase == Leaving && !s.stopped(s.current) {
		phase = Leaving
		s.keepApart(s.current)
	}
	if !s.settle(phase, s.situate().activation(s.policy)) {
		return
	}
	exclusive := s.current.Handover == HandoverExclusive
	if s.current.HostPorts || exclusive {
		for _, id := range s.orphans() {
			s.emit(Action{Kind: StopSandbox, Sandbox: id, Reason: ReasonOrphan}, s.current)
		}
		if s.anotherRuns() {
			return // until the kubelet has stopped it
		}
	}
	if exclusive && s.anySandbox() {
		return // the orphan first
	}
	s.next.Phase, s.next.Handed = Active, Handed{}
	s.emit(Action{Kind: Activate, Reason: s.next.Reason}, s.current)
}

// stayActive keeps an active checkpoint, and its file, until the table says to withdraw it.
func (s *step) stayActive() {
	if s.active == nil {
		s.active = s.current
	}
	s.prove()
	r := s.situateActive().withdrawal(s.policy)
	if r.act && s.isLastCopy(s.active) {
		r = hold(ReasonLastCopy)
	}
	switch {
	case s.fallBack(r):
	case s.settle(Active, r):
		s.handOver()
	case s.active.Active != Intact:
		s.emit(Action{Kind: Activate, Reason: ReasonFileLost}, s.active)
	default:
		s.retry()
	}
}

// isLastCopy says whether nothing of the checkpoint would be left on disk without its active manifest. Its port or its place
// waits until the stored one is restored; data that two must not use does not.
func (s *step) isLastCopy(c *Checkpoint) bool {
	return c.Active == Intact && c.Stored != Intact && c.Handover != HandoverExclusive
}

// settle notes the row that holds now and since when it does, and says whether it acts now.
func (s *step) settle(phase Phase, r row) bool {
	s.next.Phase, s.next.Reason, s.next.Since = phase, r.reason, s.Now
	if r.quiet {
		s.next.Containers = s.print()
	}
	if s.prev.Reason == s.next.Reason && s.prev.Containers == s.next.Containers {
		s.next.Since = s.prev.Since
	}
	switch r.reason {
	case ReasonAPIUnknown:
		s.due(s.apiPatience())
	case ReasonKubeletUnknown:
		s.due(s.kubeletPatience())
	}
	return r.act && s.due(s.next.Since.Add(r.after))
}

// due says whether t has come, and asks to be woken if not.
func (s *step) due(t time.Time) bool {
	if s.Now.Before(t) {
		s.wake = earliest(s.wake, t)
		return false
	}
	return true
}

// repair puts back what somebody else took from the inactive directory.
func (s *step) repair() {
	for i := range s.checkpoints {
		if c := &s.checkpoints[i]; c.Stored != Intact {
			s.emit(Action{Kind: Restore, Reason: ReasonFileLost}, c)
		}
	}
}

// remember has the marks written when they are not on disk.
func (s *step) remember() {
	if s.next.Marks != s.Disk.Marks[s.lineage] {
		s.actions = append(s.actions, Action{Kind: Mark, Lineage: s.lineage, Marks: s.next.Marks, Reason: ReasonMarks})
	}
}

func (s *step) emit(a Action, c *Checkpoint) {
	a.Lineage, a.Namespace, a.Name, a.Previous = s.lineage, c.Namespace, c.Name, c.Previous
	s.actions = append(s.actions, a)
}
