package checkpoint

import "slices"

// staySelf keeps the checkpointer's own checkpoint active, so that it starts at boot, and sees to it that the lead passes
// to a new revision without a moment in which nobody could take it:
//
//   - The leader of the old revision activates the new one's checkpoint beside its own, and steps down once a copy of the
//     new revision stands by.
//   - The leader of the new revision takes the old checkpoint away when it has led for a while.
//   - If it crashes before, the old copy leads again, and the new revision is marked: it gets no second chance on this
//     node.
func (s *step) staySelf() {
	s.settle(Active, hold(ReasonSelf))
	if s.current.Active != Intact {
		s.emit(Action{Kind: Activate, Reason: ReasonSelf}, s.current)
	}
	for i := range s.checkpoints {
		if c := &s.checkpoints[i]; c != s.current {
			s.stayRevision(c)
		}
	}
	switch {
	case s.leads(s.current), s.ahead():
		s.next.Marks.HandedTo = ""
	case s.next.Marks.HandedTo == s.current.ParentUID && s.crashed(s.current):
		s.next.Marks.Stuck, s.next.Marks.HandedTo = s.current.ParentUID, "" // from the next plan on, ours is the one to run
	case s.current.Active == Intact && s.standsBy(s.current):
		s.next.Marks.HandedTo = s.current.ParentUID
		if s.Disk.Marks[s.lineage] == s.next.Marks { // else nobody could tell later whose crash it was
			s.emit(Action{Kind: StepDown, Reason: ReasonNewRevision}, s.current)
		}
	}
	s.prune()
}

// stayRevision decides over the own checkpoint of another revision than the one to run.
func (s *step) stayRevision(c *Checkpoint) {
	reason := ReasonSucceeded
	switch {
	case s.next.Marks.rules(c, true):
		reason = ReasonRevisionFailed
	case s.current.Active != Intact, !s.leads(s.current), !s.due(s.Start.Add(s.policy.PromoteAfter)):
		if s.leads(c) && c.Active != Intact {
			s.emit(Action{Kind: Activate, Reason: ReasonFileLost}, c)
		}
		return
	}
	switch {
	case c.Active != Missing:
		s.emit(Action{Kind: Withdraw, Reason: reason}, c)
	case s.stopped(c):
		s.emit(Action{Kind: Remove, Reason: reason}, c)
	}
}

// leads says whether this process is of the checkpoint's revision. One that has no pod of its own leads for all.
func (s *step) leads(c *Checkpoint) bool {
	return s.policy.SelfName == "" || s.policy.SelfName == c.Name
}

// ahead says whether this process is of the revision that is wanted, though another one's checkpoint is still the one to run:
// it keeps the lead until its own is stored.
func (s *step) ahead() bool {
	p := s.parent
	return p != nil && p.Name == s.policy.SelfName && p.UID != s.next.Marks.Stuck
}

// standsBy says whether a copy of the revision runs: the DaemonSet's pod, or the static one.
func (s *step) standsBy(c *Checkpoint) bool {
	return s.Runtime == RuntimeKnown && (s.up(c.ParentUID) || s.checkpointUp(c))
}

// crashed says whether a copy of the revision has exited in a sandbox of now. What a power cut ended is not in one.
func (s *step) crashed(c *Checkpoint) bool {
	return slices.ContainsFunc(s.sandboxes, func(b Sandbox) bool {
		return b.Ready && (b.Of(c) || b.UID == c.ParentUID) && slices.ContainsFunc(b.Containers, func(k Container) bool {
			return k.State == ContainerExited
		})
	})
}
