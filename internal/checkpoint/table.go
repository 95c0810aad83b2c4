package checkpoint

import "time"

// row is one line of the table that says when to activate, or when to withdraw.
type row struct {
	reason Reason
	act    bool          // whether it ever acts: activates in activation, withdraws in withdrawal
	after  time.Duration // how long the row must have held before it acts
	quiet  bool          // whether a change of the lineage's containers starts that time anew
}

func hold(reason Reason) row                     { return row{reason: reason} }
func act(reason Reason, after time.Duration) row { return row{reason: reason, act: true, after: after} }

// activation is the table of what a stored checkpoint waits for.
func (t Situation) activation(p Policy) row {
	r := t.need(p)
	switch {
	case r.act && t.Port == PortTaken:
		return hold(ReasonPortTaken)
	case r.act && t.Handover == HandoverExclusive && t.Kubelet != KubeletNoAPI && t.Running >= RunsSandbox:
		return hold(ReasonStillRunning)
	default:
		return r
	}
}

// need is the table without what may stand in the way.
func (t Situation) need(p Policy) row {
	switch {
	case t.Runtime == RuntimeUnknown:
		return hold(ReasonRuntimeUnknown)
	case t.Running >= RunsUp:
		return hold(ReasonParentUp)
	case t.API == APIQuiet:
		return hold(ReasonAPIUnknown)
	case t.Kubelet == KubeletQuiet:
		return hold(ReasonKubeletUnknown)
	case t.Parent == ParentManaged && t.Trouble == NoTrouble:
		return hold(ReasonParentManaged)
	case t.Parent == ParentManaged && t.Trouble == ParentNotBegun:
		return act(ReasonParentNotBegun, 0)
	case t.Parent == ParentManaged:
		return act(ReasonParentStuck, 0)
	case t.API == APIAway:
		return t.needWithoutAPI(p)
	default:
		return t.needServing(p)
	}
}

func (t Situation) needWithoutAPI(p Policy) row {
	switch {
	case t.Kubelet == KubeletNoAPI:
		return act(ReasonKubeletRestarted, 0)
	case t.Parent == ParentEvicted:
		return hold(ReasonParentEvicted)
	case t.Kubelet == KubeletCantSay:
		return row{reason: ReasonParentDown, act: true, after: p.Settle, quiet: true}
	default:
		return row{reason: ReasonParentUnmanaged, act: true, after: p.Settle, quiet: true}
	}
}

func (t Situation) needServing(p Policy) row {
	switch {
	case t.API == APIRelists:
		return hold(ReasonAPIListing)
	case t.Parent == ParentGone:
		return hold(ReasonParentGone)
	case t.Kubelet == KubeletNoAPI && t.Admission == AdmissionBlocked:
		return hold(ReasonParentBlocked)
	case t.Kubelet == KubeletNoAPI:
		return act(ReasonKubeletSyncing, p.KubeletSync)
	case t.Parent == ParentEvicted:
		return hold(ReasonParentEvicted)
	default:
		return act(ReasonParentNotRun, p.StuckAfter)
	}
}

// withdrawal is the table of what an active checkpoint waits for.
func (t Situation) withdrawal(p Policy) row {
	switch {
	case t.Runtime == RuntimeUnknown:
		return hold(ReasonRuntimeUnknown)
	case t.Port == PortTaken:
		return act(ReasonPortTaken, 0)
	case t.API == APIServes && t.Admission == AdmissionBlocked && (t.Parent == ParentBound || t.Parent == ParentOver):
		return act(ReasonParentBlocked, 0)
	case t.Parent != ParentManaged && t.Trouble == CheckpointStuck:
		return hold(ReasonCheckpointStuck)
	case t.Parent != ParentManaged:
		return hold(ReasonParentAbsent)
	case t.Handover == HandoverExclusive && t.Running >= RunsSandbox:
		return act(ReasonParentAppeared, 0)
	case t.Trouble == ParentStuck:
		return hold(ReasonParentStuck)
	case t.Handover == HandoverCreated && t.Running >= RunsCreated:
		return act(ReasonParentCreated, 0)
	case t.Handover >= HandoverCreated:
		return hold(ReasonParentStarting)
	case t.Running == RunsReady && t.Handover == HandoverShared:
		return row{reason: ReasonParentReady, act: true, after: p.PromoteAfter, quiet: true}
	case t.Running == RunsReady:
		return act(ReasonParentReady, 0)
	case t.Running == RunsUp:
		return act(ReasonParentNotReady, p.StuckAfter)
	default:
		return hold(ReasonParentNotUp)
	}
}
