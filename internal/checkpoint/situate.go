package checkpoint

// situate reduces what is known to what decides over a stored checkpoint: whatever runs of its lineage.
func (s *step) situate() Situation {
	t := Situation{
		API: s.apiWord(), Kubelet: s.kubeletWord(), Runtime: s.Runtime, Parent: s.parentWord(), Handover: s.current.Handover,
		Port: portWord(s.contested()), Admission: s.admission(s.current),
	}
	if s.anyManaged() {
		t.Parent = ParentManaged
	}
	for _, uid := range s.uids() {
		t.Running = max(t.Running, s.running(uid))
	}
	switch {
	case s.next.Marks.Stuck != "" && s.next.Marks.Stuck == s.tended():
		t.Trouble = ParentStuck
	case s.next.Downtime.lasts(s.policy.StuckAfter):
		t.Trouble = ParentNotBegun
	}
	return t
}

// situateActive reduces what is known to what decides over an active checkpoint: the pod that takes over from it.
func (s *step) situateActive() Situation {
	t := Situation{API: s.apiWord(), Kubelet: s.kubeletWord(), Runtime: s.Runtime, Parent: s.parentWord(), Port: portWord(s.outranked())}
	t.Admission = s.admission(s.active)
	taker := s.taker(s.next.Marks)
	if taker != nil {
		t.Parent, t.Running, t.Handover = ParentManaged, s.progress(taker), taker.Handover
	}
	switch {
	case s.stuck(taker):
		t.Trouble = ParentStuck
	case s.next.Downtime.lasts(s.policy.StuckAfter):
		t.Trouble = CheckpointStuck
	}
	return t
}

func (s *step) stuck(p *Parent) bool { return p != nil && p.UID == s.next.Marks.Stuck }

func (v *view) apiWord() APIWord {
	switch {
	case v.API == APIServing && v.APICurrent:
		return APIServes
	case v.API == APIServing:
		return APIRelists
	case v.API == APIUnknown && v.Now.Before(v.apiPatience()):
		return APIQuiet
	default:
		return APIAway
	}
}

func (v *view) kubeletWord() KubeletWord {
	switch {
	case v.Kubelet == KubeletUnsynced:
		return KubeletNoAPI
	case v.Kubelet == KubeletSynced:
		return KubeletInSync
	case v.Kubelet == KubeletUnknown && v.Now.Before(v.kubeletPatience()):
		return KubeletQuiet
	default:
		return KubeletCantSay
	}
}

// parentWord is what is known of the parent where the kubelet does not have it in hand.
func (v *view) parentWord() ParentWord {
	switch p := v.parent; {
	case v.evicted():
		return ParentEvicted
	case p == nil:
		return ParentGone
	case p.Phase != PodLive:
		return ParentOver
	default:
		return ParentBound
	}
}

// evicted says whether the kubelet ended the parent by its own choice. While the API server is away, the kubelet's own word
// is the only one of now.
func (v *view) evicted() bool {
	switch {
	case v.parent != nil:
		return v.parent.Phase == PodEvicted || v.Kubelet == KubeletSynced && v.Evicted[v.parent.UID]
	case v.current != nil && v.API != APIServing:
		return v.Kubelet == KubeletSynced && v.Evicted[v.current.ParentUID]
	default:
		return false
	}
}

// running is how far one pod has come.
func (v *view) running(uid UID) Running {
	switch {
	case v.sandbox(uid) == nil:
		return RunsNothing
	case v.up(uid):
		return RunsUp
	case v.created(uid):
		return RunsCreated
	default:
		return RunsSandbox
	}
}

// progress is how far a pod has come, and whether it is Ready.
func (v *view) progress(p *Parent) Running {
	r := v.running(p.UID)
	if r == RunsUp && v.ready(p) {
		return RunsReady
	}
	return r
}

// admission says whether the checkpoint stands in the parent's way. A pod whose host port another one declares is rejected by
// the kubelet for good (k8s.io/kubernetes/pkg/kubelet/lifecycle, generalFilter), even while the other one ends. So it goes
// before the kubelet hears of the parent, but is not waited for without end: the kubelet may be cut off though we are not.
// After a rejection it goes for the parent's successor, once.
func (s *step) admission(c *Checkpoint) AdmissionWord {
	p := s.parent
	switch {
	case !c.DeclaresPorts || p == nil || p.UID == s.next.Marks.Stuck:
		return AdmissionOpen
	case s.kubeletWord() == KubeletNoAPI && p.Phase == PodLive && !s.due(s.APISince.Add(s.policy.StuckAfter)):
		return AdmissionBlocked
	case s.kubeletWord() != KubeletNoAPI && p.Phase == PodEnded:
		return AdmissionBlocked
	default:
		return AdmissionOpen
	}
}

func portWord(taken bool) PortWord {
	if taken {
		return PortTaken
	}
	return PortFree
}
