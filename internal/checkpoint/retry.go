package checkpoint

import (
	"slices"
	"time"
)

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
	if c.Active != Intact || s.Runtime == RuntimeUnknown || s.Kubelet == KubeletUnknown || s.exists(c) || s.mayStart(c) {
		return
	}
	s.next.Ignored = s.prev.Ignored
	if s.next.Ignored.Since.IsZero() {
		s.next.Ignored.Since = s.Now
	}
	ignored := &s.next.Ignored
	if s.started.After(ignored.Since) {
		ignored.Since = s.started // it is busy with others
	}
	wait := min(s.policy.RejectedAfter<<ignored.Retries, maxRetryWait)
	if s.Kubelet == KubeletAbsent && s.API != APIServing {
		wait = max(wait, s.policy.StuckAfter) // it may only be starting
	}
	if !s.due(ignored.Since.Add(wait)) {
		return
	}
	*ignored = Ignored{Since: s.Now, Retries: min(ignored.Retries+1, 10)}
	s.emit(Action{Kind: Retry, Reason: ReasonIgnored}, c)
}

// mayStart says whether the kubelet may have admitted the checkpoint though it has no sandbox yet: on the pod network a pod
// waits for that, which no sandbox shows to be there. A kubelet that has not seen the API server ends no pod, and has one of
// a name at a time: with another nonce, it would wait for the first one's end for ever.
func (s *step) mayStart(c *Checkpoint) bool {
	if c.HostPorts || s.Kubelet == KubeletSynced || s.API == APIServing {
		return false
	}
	return !slices.ContainsFunc(s.Disk.Checkpoints, func(o Checkpoint) bool {
		return !o.HostPorts && slices.ContainsFunc(s.Sandboxes, func(b Sandbox) bool { return b.Of(&o) && b.Ready })
	})
}

// lastStart is when the kubelet last started a pod from its static pod directory. A clock that was set back has no say.
func (w *World) lastStart() (last time.Time) {
	for _, b := range w.Sandboxes {
		if b.FromFile && b.Created.After(last) && !b.Created.After(w.Now) {
			last = b.Created
		}
	}
	return last
}
