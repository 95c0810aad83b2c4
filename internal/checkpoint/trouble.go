package checkpoint

import (
	"slices"
	"time"
)

// Downtime counts how long something that should be up is down, so that neither a crash loop's moments of life nor one
// slow start decide: each 3 s up make up for 2 s down, so that what is down for more than 2 of each 5 min reaches 2 min.
// Twice the limit is the most, so that what was down for days is not stuck at the first moment that it is down again.
type Downtime struct {
	Of    string // what is counted; another thing starts anew
	Total time.Duration
	Down  bool
	At    time.Time // of Total
}

// count brings the count of a thing up to now.
func (d Downtime) count(of string, down bool, now time.Time, limit time.Duration) Downtime {
	if d.Of != of {
		d = Downtime{Of: of, At: now}
	}
	if passed := now.Sub(d.At); d.Down {
		d.Total = min(d.Total+passed, 2*limit)
	} else {
		d.Total = max(0, d.Total-passed*2/3)
	}
	if !down && d.Total == 0 {
		return Downtime{}
	}
	d.Down, d.At = down, now
	return d
}

func (d Downtime) lasts(limit time.Duration) bool { return d.Of != "" && d.Total >= limit }

// judge keeps count of what is down, and marks the parent that the kubelet manages in vain: its checkpoint does the work
// until that very pod has been up for a while, so that nothing flips, or another pod takes its place.
func (s *step) judge() {
	s.next.Marks = s.prev.Marks
	s.next.Marks.LoadBearing = s.next.Marks.LoadBearing && !s.reliable()
	if s.next.Marks.Stuck != "" && (s.replaced(s.next.Marks.Stuck) || s.proven(s.next.Marks.Stuck)) {
		s.next.Marks.Stuck = ""
	}
	if s.self() {
		return
	}
	s.next.Downtime = s.downtime()
	if d := s.next.Downtime; d.Down {
		s.due(s.Now.Add(s.policy.StuckAfter - d.Total))
	}
	s.judgeHandover()
	uid, stored := s.tended(), s.current != nil && s.active == nil
	if stored && s.next.Downtime.lasts(s.policy.StuckAfter) && s.begun(uid) {
		s.next.Marks.Stuck = uid
	}
}

// replaced says whether the API server has another pod in the place of the one that is marked.
func (v *view) replaced(stuck UID) bool {
	return v.parent != nil && !slices.ContainsFunc(v.parents, func(p Parent) bool { return p.UID == stuck })
}

// tended is the pod of the lineage that the kubelet manages: the parent, or without it one that the API server wanted to end
// before it went away, or told nothing of since our start. Empty: none.
func (v *view) tended() UID {
	if v.parent != nil && v.managed(v.parent.UID) {
		return v.parent.UID
	}
	for _, uid := range v.uids() {
		if v.managed(uid) {
			return uid
		}
	}
	return ""
}

// downtime is of the active checkpoint, once the kubelet took it up, else of the pod that the kubelet manages. What
// is not known is not down.
func (s *step) downtime() Downtime {
	switch uid := s.tended(); {
	case s.Runtime == RuntimeUnknown:
		return Downtime{}
	case s.active != nil && s.exists(s.active):
		return s.prev.Downtime.count("checkpoint "+s.active.Manifest, !s.checkpointUp(s.active), s.Now, s.policy.StuckAfter)
	case s.active == nil && uid != "":
		return s.prev.Downtime.count("pod "+string(uid), !s.up(uid), s.Now, s.policy.StuckAfter)
	default:
		return Downtime{}
	}
}

// proven says whether the pod has been up for long enough to be trusted again. Of the checkpointer itself that proves
// nothing: it failed to lead, and does not while it stands by.
func (s *step) proven(stuck UID) bool {
	if s.self() || !s.up(stuck) {
		return false
	}
	s.next.UpSince = s.prev.UpSince
	if s.next.UpSince.IsZero() {
		s.next.UpSince = s.Now
	}
	return s.due(s.next.UpSince.Add(s.policy.PromoteAfter))
}

// judgeHandover marks a pod for which the checkpoint made room, and which did not make use of it. One that was not started since
// the port is free had no chance to: the kubelet may still be in the back-off from a start for which the port was taken. With
// its checkpoint back on the port it would never have one.
func (s *step) judgeHandover() {
	h := s.prev.Handed
	if h.UID == "" || !slices.ContainsFunc(s.parents, func(p Parent) bool { return p.UID == h.UID }) {
		return
	}
	sandbox := s.sandbox(h.UID)
	h.Tried = h.Tried || sandbox != nil && sandbox.starts(s.required(h.UID)) && s.allStopped()
	s.next.Handed = h
	if !s.due(h.At.Add(s.policy.HandoverTimeout)) || s.Runtime == RuntimeUnknown || s.Kubelet != KubeletSynced {
		return
	}
	down := s.managed(h.UID) && !s.up(h.UID)
	if down && !h.Tried {
		return
	}
	s.next.Handed = Handed{}
	if down {
		s.next.Marks.Stuck = h.UID
	}
}
