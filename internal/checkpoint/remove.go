package checkpoint

import "time"

// remove takes a checkpoint away whose lineage is gone, and says whether it is on its way out. It can't cut the branch
// it sits on: an active checkpoint is withdrawn and kept until it has stopped and the API server still says the same.
// If the API server falls silent meanwhile, it was living on that checkpoint, which is then kept.
func (s *step) remove() bool {
	if s.next.Marks.Removing && s.API != APIServing && s.API != APIUnknown {
		s.next.Marks.LoadBearing = true
	}
	if s.current == nil || s.next.Marks.LoadBearing || !s.wantedGone() {
		s.next.Marks.Removing = s.next.Marks.Removing && s.current != nil && s.parent == nil && !s.next.Marks.LoadBearing
		return false
	}
	switch {
	case !s.confirmed():
		s.emit(Action{Kind: Confirm, Reason: ReasonRemovalPending}, s.current)
		return false
	case s.self() && s.othersLeft():
		return false // our own goes last
	case s.self():
		s.removeSelf()
	case s.active != nil:
		s.removing(ReasonRemovalStopping)
		s.next.Marks.Removing = true
		if s.Disk.Marks[s.lineage].Removing { // else a restart would not know that it may have cut itself off
			s.emit(Action{Kind: Withdraw, Reason: ReasonRemovalStopping}, s.active)
		}
	case !s.allStopped():
		s.removing(ReasonRemovalStopping)
	case s.next.Marks.Removing && !s.confirmedAgain():
	default:
		s.removing(ReasonRemovalConfirmed)
		for i := range s.checkpoints {
			s.emit(Action{Kind: Remove, Reason: ReasonRemovalConfirmed}, &s.checkpoints[i])
		}
	}
	return true
}

// removeSelf does all of it in one plan: once our own manifest is withdrawn, the kubelet ends whoever would go on.
func (s *step) removeSelf() {
	s.removing(ReasonRemovalConfirmed)
	for i := range s.checkpoints {
		c := &s.checkpoints[i]
		if c.Active != Missing {
			s.emit(Action{Kind: Withdraw, Reason: ReasonRemovalConfirmed}, c)
		}
		s.emit(Action{Kind: Remove, Reason: ReasonRemovalConfirmed}, c)
	}
}

func (s *step) removing(reason Reason) { s.settle(Removing, hold(reason)) }

// confirmedAgain says whether the API server has kept saying that the lineage is gone since the checkpoint stopped.
func (s *step) confirmedAgain() bool {
	s.removing(ReasonRemovalConfirmed)
	return s.due(s.next.Since.Add(s.policy.Confirm))
}

// goneSince is when the API server began to say so, without a break since.
func (s *step) goneSince() time.Time {
	switch {
	case !s.gone():
		return time.Time{}
	case s.prev.GoneSince.IsZero():
		return s.Now
	default:
		return s.prev.GoneSince
	}
}

// wantedGone says whether the lineage has been gone for the whole grace. Grace starts again whenever the API server is
// not there to say so.
func (s *step) wantedGone() bool {
	if s.unscheduled && !s.self() {
		return true
	}
	return s.gone() && s.due(s.next.GoneSince.Add(s.policy.Grace))
}

// confirmed says whether a live LIST at the end of the grace showed the same.
func (s *step) confirmed() bool {
	if s.unscheduled && !s.self() {
		return true // our own lineage's removal is confirmed
	}
	at, ok := s.Confirmed[s.lineage]
	return ok && !at.Before(s.next.GoneSince.Add(s.policy.Grace))
}

// othersLeft says whether a checkpoint other than our own is on disk.
func (s *step) othersLeft() bool {
	for _, c := range s.Disk.Checkpoints {
		if c.Lineage != s.lineage {
			return true
		}
	}
	return false
}
