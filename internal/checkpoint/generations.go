package checkpoint

import (
	"cmp"
	"slices"
	"time"
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

// Ignored is an active manifest that the kubelet makes nothing of.
type Ignored struct {
	Since   time.Time
	Retries int
}

// maxRetryWait is how long a rejected manifest waits at most for its next chance.
const maxRetryWait = 5 * time.Minute

// retry gives the kubelet, which rejects a static pod once and then forgets it, another look.
func (s *step) retry() {
	c := s.active
	if c.Active != Intact || s.Runtime == RuntimeUnknown || s.Kubelet == KubeletUnknown || s.exists(c) || s.awaitsNetwork(c) {
		return
	}
	s.next.Ignored = s.prev.Ignored
	if s.next.Ignored.Since.IsZero() {
		s.next.Ignored.Since = s.Now
	}
	ignored := &s.next.Ignored
	if !s.due(ignored.Since.Add(min(s.policy.RejectedAfter<<ignored.Retries, maxRetryWait))) {
		return
	}
	*ignored = Ignored{Since: s.Now, Retries: min(ignored.Retries+1, 10)}
	s.emit(Action{Kind: Retry, Reason: ReasonIgnored}, c)
}

// awaitsNetwork says whether the kubelet may have admitted the checkpoint and only wait for the pod network, which no
// sandbox on it shows to be there. A kubelet that has not seen the API server ends no pod, and has one of a name at a time:
// with another nonce, it would wait for the first one's end for ever.
func (s *step) awaitsNetwork(c *Checkpoint) bool {
	if c.HostPorts || s.Kubelet == KubeletSynced || s.API == APIServing {
		return false
	}
	return !slices.ContainsFunc(s.Disk.Checkpoints, func(o Checkpoint) bool {
		return !o.HostPorts && slices.ContainsFunc(s.Sandboxes, func(b Sandbox) bool { return b.of(&o) && b.Ready })
	})
}
