package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// Plan compares what should be with what is. It returns the state to pass to its next call, the actions in the order in
// which to apply them, and the instant at which to call it again though no fact has changed (zero: never).
//
// While the disk is not known there is nothing to compare with: prev is returned as it is.
func Plan(prev map[Lineage]State, w World, p Policy) (next map[Lineage]State, actions []Action, wake time.Time) {
	if !w.Disk.Known {
		return prev, nil, time.Time{}
	}
	next = make(map[Lineage]State)
	all := divide(&w)
	unscheduled := unscheduled(prev, w, p, all)
	started := w.lastStart()
	var steps []*step
	var views []*view
	for _, l := range all.lineages(prev, w.Disk.Marks) {
		before, known := prev[l]
		if !known {
			before.Marks = w.Disk.Marks[l]
		}
		v := look(&w, p, l, all[l], before.Marks)
		views, steps = append(views, v), append(steps, &step{view: v, prev: before, unscheduled: unscheduled, started: started})
	}
	for _, s := range steps {
		s.others = views
		s.decide()
		s.remember()
		l := s.lineage
		if s.next != (State{}) {
			next[l] = s.next
		}
		actions = append(actions, s.actions...)
		wake = earliest(wake, s.wake)
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		if c := cmp.Compare(a.Kind, b.Kind); c != 0 {
			return c
		}
		return compareSelf(a.Lineage, b.Lineage, p.Self)
	})
	return next, actions, wake
}

// compareSelf orders the checkpointer's own lineage last.
func compareSelf(a, b, self Lineage) int {
	switch {
	case a == b:
		return 0
	case a == self:
		return 1
	case b == self:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}

// unscheduled says whether the checkpointer itself is no longer wanted on this node: then no checkpoint is.
func unscheduled(prev map[Lineage]State, w World, p Policy, all parts) bool {
	if p.Self == "" {
		return false
	}
	self := all[p.Self]
	if self == nil {
		self = new(part)
	}
	v := look(&w, p, p.Self, self, Marks{})
	since := prev[p.Self].GoneSince
	return v.gone() && !since.IsZero() && !w.Now.Before(since.Add(p.Grace)) &&
		!w.Confirmed[p.Self].Before(since.Add(p.Grace))
}

// earliest is the earlier of two instants, of which zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
