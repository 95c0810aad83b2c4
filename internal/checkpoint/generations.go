package checkpoint

import (
	"cmp"
	"slices"
)

// lookAtGenerations sorts the lineage's checkpoints, newest first, and finds those that count.
func (v *view) lookAtGenerations(marks Marks) {
	slices.SortFunc(v.checkpoints, func(a, b Checkpoint) int {
		return cmp.Or(v.rank(a)-v.rank(b), b.SavedAt.Compare(a.SavedAt), cmp.Compare(b.Name, a.Name))
	})
	for i := range v.checkpoints {
		c := &v.checkpoints[i]
		if v.own == nil && v.isOwn(*c) {
			v.own = c
		}
		if v.current == nil && !marks.rules(c, v.self()) {
			v.current = c
		}
		if c.Active != Missing && (v.active == nil || c == v.current) {
			v.active = c
		}
	}
	if v.current == nil && len(v.checkpoints) > 0 {
		v.current = &v.checkpoints[0]
	}
}

// rank puts the parent's own checkpoint before others, and a generation before after its successor.
func (v *view) rank(c Checkpoint) int {
	switch {
	case v.isOwn(c):
		return 0
	case !c.Previous:
		return 1
	default:
		return 2
	}
}

func (v *view) isOwn(c Checkpoint) bool { return v.parent != nil && c.ParentUID == v.parent.UID }

// rules out a generation that was seen to fail.
func (m Marks) rules(c *Checkpoint, self bool) bool {
	return m.Failed != "" && c.Manifest == m.Failed || self && m.Stuck != "" && c.ParentUID == m.Stuck
}

// fallBack gives up an active checkpoint that does not come up, if there is another generation to try, and says so. What
// the API server runs now is no reason to: it can be tried only while there is none.
func (s *step) fallBack(r row) bool {
	c := s.active
	other := slices.ContainsFunc(s.checkpoints, func(o Checkpoint) bool { return o.Manifest != c.Manifest && !s.next.Marks.rules(&o, false) })
	if r.reason != ReasonCheckpointStuck || c.Active == Missing || c.Stored != Intact || !other || s.next.Marks.Failed == c.Manifest {
		return false
	}
	s.next.Marks.Failed = c.Manifest
	s.next.Phase, s.next.Reason, s.next.Since = Leaving, ReasonFallback, s.Now
	s.emit(Action{Kind: Withdraw, Reason: ReasonFallback}, c)
	return true
}

// prove remembers that the active checkpoint has been up, so that it needs no generation before it any more.
func (s *step) prove() {
	if s.active != nil && len(s.checkpoints) > 1 && s.active.Manifest != "" && s.checkpointUp(s.active) {
		s.next.Marks.Proven = s.active.Manifest
	}
}

// clean removes generations that nothing needs any more.
func (s *step) clean() {
	previous := s.previous()
	for i := range s.checkpoints {
		c := &s.checkpoints[i]
		switch {
		case c == s.current || s.current.Stored != Intact:
		case c.Active != Missing && c != s.active:
			s.emit(Action{Kind: Withdraw, Reason: ReasonSucceeded}, c)
		case c.Active != Missing || !s.stopped(c):
		case c == s.newest() || c == previous && !s.expired():
		default:
			s.emit(Action{Kind: Remove, Reason: ReasonSucceeded}, c)
		}
	}
}

// prune removes generations of assets that no sandbox needs any more.
func (s *step) prune() {
	if c := s.current; c.Outdated && c.Active == Missing && s.stopped(c) {
		s.emit(Action{Kind: Prune, Reason: ReasonOutdated}, c)
	}
}

// newest is what the lineage's checkpoint should be, though another one may have to do for it.
func (s *step) newest() *Checkpoint { return &s.checkpoints[0] }

// previous is the generation that is kept beside the one to run.
func (s *step) previous() *Checkpoint {
	for i := range s.checkpoints {
		if c := &s.checkpoints[i]; c != s.current && !s.next.Marks.rules(c, false) {
			return c
		}
	}
	return nil
}

// expired says whether the generation to run needs none before it any more.
func (s *step) expired() bool {
	c := s.current
	return c.Manifest != "" && c.Manifest == s.next.Marks.Proven || s.due(c.SavedAt.Add(s.policy.KeepPrevious))
}

// allStopped says whether nothing of any generation is left running.
func (v *view) allStopped() bool {
	return !slices.ContainsFunc(v.checkpoints, func(c Checkpoint) bool { return !v.stopped(&c) })
}

// anotherRuns says whether another generation than the one to run has not stopped yet.
func (v *view) anotherRuns() bool {
	return slices.ContainsFunc(v.checkpoints, func(c Checkpoint) bool { return c.Name != v.current.Name && !v.stopped(&c) })
}
