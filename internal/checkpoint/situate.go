package checkpoint

// situate reduces what is known to what decides over a stored checkpoint, or an active one.
func (s *step) situate(active bool) Situation {
	t := Situation{API: s.apiWord(), Kubelet: s.kubeletWord(), Runtime: s.Runtime, Parent: s.parentWord(active)}
	if active {
		if s.parent != nil {
			t.Running, t.Handover = s.running(s.parent.UID), s.parent.Handover
		}
		if t.Running == RunsUp && s.ready(s.parent) {
			t.Running = RunsReady
		}
		t.Port = portWord(s.outranked())
	} else {
		for _, uid := range s.uids() {
			t.Running = max(t.Running, s.running(uid))
		}
		t.Handover = s.current.Handover
		t.Port = portWord(s.contested())
	}
	t.Trouble = s.trouble(active)
	return t
}

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

// parentWord is, to an active checkpoint, about the one pod that is to take over; to a stored one, about any of them.
func (v *view) parentWord(active bool) ParentWord {
	p := v.parent
	switch {
	case active && p != nil && p.Phase == PodLive && v.taken(p), !active && v.anyManaged():
		return ParentManaged
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

func (s *step) trouble(active bool) Trouble {
	lasts := s.next.Downtime.lasts(s.policy.StuckAfter)
	switch {
	case s.parent != nil && s.next.Marks.Stuck == s.parent.UID:
		return ParentStuck
	case active && lasts:
		return CheckpointStuck
	case !active && lasts:
		return ParentNotBegun
	default:
		return NoTrouble
	}
}

func portWord(taken bool) PortWord {
	if taken {
		return PortTaken
	}
	return PortFree
}
