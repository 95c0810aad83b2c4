package checkpoint

import "time"

// step decides for one lineage.
type step struct {
	*view
	prev        State
	unscheduled bool // the checkpointer itself is to leave this node

	next    State
	actions []Action
	wake    time.Time
}

func (s *step) decide() {
	s.next.Up = s.anyUp()
	s.next.Kept = s.prev.Kept && !s.next.Up
	s.next.GoneSince = s.goneSince()
	s.save()
	if s.remove() {
		return
	}
	if s.current == nil {
		s.settle(Absent, hold(ReasonNoCheckpoint))
		if s.parent == nil && !s.self() {
			s.next = State{} // nothing is left to remember
		}
		return
	}
	s.repair()
	if s.prev.Phase == Active || s.active != nil {
		s.stayActive()
	} else {
		s.stayStored()
	}
	s.clean()
}

// stayStored keeps a stored checkpoint until the table says to activate it.
func (s *step) stayStored() {
	phase := Stored
	if s.prev.Phase == Leaving && !s.stopped(s.current) {
		phase = Leaving
	}
	if phase == Leaving {
		s.keepApart(s.current)
	}
	if !s.settle(phase, s.activation()) {
		return
	}
	exclusive := s.current.Handover == HandoverExclusive
	if s.current.HostPorts || exclusive {
		for _, id := range s.orphans() {
			s.emit(Action{Kind: StopSandbox, Sandbox: id, Reason: ReasonOrphan}, s.current)
		}
	}
	if exclusive && s.anySandbox() {
		return // the orphan first
	}
	s.next.Phase = Active
	s.emit(Action{Kind: Activate, Reason: s.next.Reason}, s.current)
}

// stayActive keeps an active checkpoint, and its file, until the table says to withdraw it.
func (s *step) stayActive() {
	if s.active == nil {
		s.active = s.current
	}
	if !s.settle(Active, s.withdrawal()) {
		if s.active.Active != Intact {
			s.emit(Action{Kind: Activate, Reason: ReasonFileLost}, s.active)
		}
		if s.self() && s.current != s.active && s.current.Active != Intact {
			s.emit(Action{Kind: Activate, Reason: ReasonSelf}, s.current) // a successor's, before the other one goes
		}
		return
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

// apart is how often the sandbox of a parent is stopped at most.
const apart = 500 * time.Millisecond

// keepApart stops the parent's sandbox for as long as anything of a checkpoint runs that must not run beside it. The
// kubelet makes another one at once.
func (s *step) keepApart(c *Checkpoint) {
	if c.Handover != HandoverExclusive || s.parent == nil || s.Runtime == RuntimeUnknown || s.stopped(c) {
		return
	}
	s.next.stoppedAt = s.prev.stoppedAt
	sandbox := s.sandbox(s.parent.UID)
	if sandbox == nil || !s.due(s.prev.stoppedAt.Add(apart)) {
		return
	}
	s.next.stoppedAt = s.Now
	s.emit(Action{Kind: StopSandbox, Sandbox: sandbox.ID, Reason: ReasonParentAppeared}, c)
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
	if !r.act {
		s.wake = earliest(s.wake, r.until)
		return false
	}
	return s.due(s.next.Since.Add(r.after))
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

// clean removes what a successor's checkpoint has replaced, and assets that no sandbox needs.
func (s *step) clean() {
	for i := range s.checkpoints {
		c := &s.checkpoints[i]
		switch {
		case c == s.current && c.Outdated && c.Active == Missing && s.stopped(c):
			s.emit(Action{Kind: Prune, Reason: ReasonOutdated}, c)
		case c == s.current || s.current.Stored != Intact:
		case c.Active == Missing && s.stopped(c):
			s.emit(Action{Kind: Remove, Reason: ReasonSucceeded}, c)
		case c.Active != Missing && s.self() && s.current.Active == Intact:
			s.emit(Action{Kind: Withdraw, Reason: ReasonSucceeded}, c)
		}
	}
}

func (s *step) emit(a Action, c *Checkpoint) {
	a.Lineage, a.Namespace, a.Name = s.lineage, c.Namespace, c.Name
	s.actions = append(s.actions, a)
}
