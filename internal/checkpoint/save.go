package checkpoint

// save stores a checkpoint of the parent: at once if there is none, else only when the parent proved itself, because a
// bad roll-out must not overwrite the last good one. The manifest of what is active is not changed while it is needed;
// its assets follow those of the parent, as a pod's volumes follow their Secret.
func (s *step) save() {
	p := s.parent
	if s.unscheduled || p == nil || p.Phase != PodLive || p.Rendering != Rendered || s.self() && s.next.Marks.Stuck == p.UID {
		return
	}
	c := s.own
	switch {
	case s.current == nil:
		if s.up(p.UID) {
			s.saveParent(p, ReasonFirst)
		}
	case c != nil && c.Digest == p.Digest:
	case c != nil && c.Manifest == p.Manifest:
		s.saveParent(p, ReasonAssetsChanged)
	case s.next.ReadyUID == "" || s.active != nil && !s.self():
	case c != nil || s.reliable():
		s.saveParent(p, ReasonParentChanged)
	}
}

func (s *step) saveParent(p *Parent, reason Reason) {
	s.actions = append(s.actions, Action{
		Kind: Save, Lineage: s.lineage, Namespace: p.Namespace, Name: p.Name, UID: p.UID, Reason: reason,
	})
}

// noteReady notes since when the parent has been Ready.
func (s *step) noteReady() {
	p := s.parent
	if p == nil || p.Phase != PodLive || !s.ready(p) {
		return
	}
	s.next.ReadySince, s.next.ReadyUID = s.Now, p.UID
	if s.prev.ReadyUID == p.UID {
		s.next.ReadySince = s.prev.ReadySince
	}
}

// reliable says whether the parent has been Ready for long enough to rely on it.
func (s *step) reliable() bool {
	return s.next.ReadyUID != "" && s.due(s.next.ReadySince.Add(s.policy.PromoteAfter))
}
