package checkpoint

import "time"

// row is one line of the table that says when to activate, or when to withdraw.
type row struct {
	reason Reason
	act    bool          // whether it ever acts: activates in activation, withdraws in withdrawal
	after  time.Duration // how long the row must have held before it acts
	quiet  bool          // whether a change of the lineage's containers starts that time anew
	until  time.Time     // of a row that holds: when patience ends and another row is taken
}

func hold(reason Reason) row                       { return row{reason: reason} }
func holdUntil(reason Reason, until time.Time) row { return row{reason: reason, until: until} }
func act(reason Reason, after time.Duration) row   { return row{reason: reason, act: true, after: after} }

// activation is the table of what a stored checkpoint waits for, its lineage's kubelet and API server permitting.
func (v *view) activation() row {
	switch {
	case v.current == nil:
		return hold(ReasonNoCheckpoint)
	case v.self():
		return act(ReasonSelf, 0)
	case v.Runtime == RuntimeUnknown:
		return hold(ReasonRuntimeUnknown)
	case v.anyUp():
		return hold(ReasonParentUp)
	case v.API == APIUnknown && v.Now.Before(v.Start.Add(v.policy.APITimeout)):
		return holdUntil(ReasonAPIUnknown, v.Start.Add(v.policy.APITimeout))
	case v.kubelet() == KubeletUnknown:
		return holdUntil(ReasonKubeletUnknown, v.KubeletSince.Add(v.policy.KubeletTimeout))
	case v.anyManaged():
		return hold(ReasonParentManaged)
	case v.current.Handover == HandoverExclusive && v.Kubelet != KubeletUnsynced && v.anySandbox():
		return hold(ReasonStillRunning)
	case v.API == APIServing:
		return v.activationServing()
	default:
		return v.activationWithoutAPI()
	}
}

func (v *view) activationWithoutAPI() row {
	switch v.kubelet() {
	case KubeletUnsynced:
		return act(ReasonKubeletRestarted, 0)
	case KubeletAbsent:
		return row{reason: ReasonParentDown, act: true, after: v.policy.Settle, quiet: true}
	default:
		if v.parent != nil && v.parent.Phase == PodEvicted {
			return hold(ReasonParentEvicted)
		}
		return row{reason: ReasonParentUnmanaged, act: true, after: v.policy.Settle, quiet: true}
	}
}

func (v *view) activationServing() row {
	switch {
	case !v.APICurrent:
		return hold(ReasonAPIListing)
	case v.parent == nil:
		return hold(ReasonParentGone)
	case v.kubelet() == KubeletUnsynced:
		return act(ReasonKubeletSyncing, v.policy.KubeletSync)
	case v.parent.Phase == PodEvicted:
		return hold(ReasonParentEvicted)
	default:
		return act(ReasonParentStuck, v.policy.StuckAfter)
	}
}

// withdrawal is the table of what an active checkpoint waits for.
func (v *view) withdrawal() row {
	p := v.parent
	switch {
	case v.self():
		return hold(ReasonSelf)
	case v.Runtime == RuntimeUnknown:
		return hold(ReasonRuntimeUnknown)
	case p == nil || p.Phase != PodLive || !v.taken(p):
		return hold(ReasonParentAbsent)
	case p.Handover == HandoverExclusive && v.sandbox(p.UID) != nil:
		return act(ReasonParentAppeared, 0)
	case p.Handover == HandoverCreated && v.created(p.UID):
		return act(ReasonParentCreated, 0)
	case p.Handover != HandoverReady:
		return hold(ReasonParentStarting)
	case v.ready(p):
		return act(ReasonParentReady, 0)
	case v.up(p.UID):
		return act(ReasonParentNotReady, v.policy.StuckAfter)
	default:
		return hold(ReasonParentNotUp)
	}
}
