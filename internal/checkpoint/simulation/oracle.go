package simulation

import (
	"fmt"
	"strings"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// oracle knows what must always hold, and compares it with what is done.
type oracle struct {
	violation string
	works     []judgement
}

// judgement is of one workload.
type judgement struct {
	goneSince time.Duration // since when this process of the agent has been told that there is no pod of it; zero: it was not
	overlap   time.Duration // for how long two copies have run while nothing was wrong
	cuts      int           // how often it was withdrawn for its removal since a pod of it was up
}

func (o *oracle) violated(w *World, format string, args ...any) {
	if o.violation == "" {
		o.violation = fmt.Sprintf(format, args...)
		w.tell("WRONG: %s", o.violation)
	}
}

// restarted forgets what the last process of the agent was told.
func (o *oracle) restarted() {
	for i := range o.works {
		o.works[i].goneSince = 0
	}
}

// heard notes what the API server has just told the agent.
func (o *oracle) heard(w *World) {
	k := &w.agent.known
	for i := range o.works {
		if told := k.API == checkpoint.APIServing && k.APICurrent && !o.hasParent(w, i); !told {
			o.works[i].goneSince = 0
		} else if o.works[i].goneSince == 0 {
			o.works[i].goneSince = w.now
		}
	}
}

func (o *oracle) hasParent(w *World, work int) bool {
	for i := range w.agent.known.Parents {
		if w.agent.known.Parents[i].Lineage == w.workloads[work].lineage() {
			return true
		}
	}
	return false
}

// planned judges a plan by what the agent knows.
func (o *oracle) planned(w *World, actions []checkpoint.Action) {
	k := &w.agent.known
	for i, a := range actions {
		work := w.workOf(a.Lineage)
		switch {
		case i > 0 && actions[i-1].Kind > a.Kind, i > 0 && actions[i-1].Kind == a.Kind && w.isSelf(actions[i-1].Lineage) && !w.isSelf(a.Lineage):
			o.violated(w, "%v of %s is out of order", a.Kind, a.Name)
		case k.Runtime == checkpoint.RuntimeUnknown && destroys(a) && !w.isSelf(a.Lineage) && !w.confirmedGone(work): // of its own, the leader is the proof
			o.violated(w, "%v of %s (%s) though the runtime does not answer", a.Kind, a.Name, a.Reason)
		case a.Kind == checkpoint.Activate && a.Reason != checkpoint.ReasonFileLost && !w.isSelf(a.Lineage) && o.works[work].goneSince != 0:
			o.violated(w, "%s is activated (%s), though the API server says that there is no such pod", a.Name, a.Reason)
		case a.Kind == checkpoint.Withdraw && !w.excused(a, work):
			o.violated(w, "%s is withdrawn (%s) without anything to take its place", a.Name, a.Reason)
		}
	}
}

func destroys(a checkpoint.Action) bool {
	return a.Kind == checkpoint.Withdraw || a.Kind == checkpoint.Remove || a.Kind == checkpoint.StopSandbox || a.Kind == checkpoint.Kick
}

// excused says whether an active checkpoint may be withdrawn: a pod of the lineage has a sandbox, another checkpoint of it is
// there, the lineage is confirmed to be gone, or another lineage's pod needs its port.
func (w *World) excused(a checkpoint.Action, work int) bool {
	if w.confirmedGone(work) || w.disk.usable(work) > 1 || a.Reason == checkpoint.ReasonPortTaken {
		return true
	}
	for i := range w.agent.known.Sandboxes {
		if s := &w.agent.known.Sandboxes[i]; !s.FromFile && s.Ready && w.workOfPod(s.UID) == work {
			return true
		}
	}
	return false
}

// confirmedGone says whether the agent has been told for the whole grace, and by a live LIST after it, that a workload, or the
// checkpointer's own, has no pod here.
func (w *World) confirmedGone(work int) bool {
	if self := w.selfWork(); self >= 0 && self != work && w.confirmedGone(self) {
		return true
	}
	since, lineage := w.oracle.works[work].goneSince, w.workloads[work].lineage()
	k := &w.agent.known
	confirmed, ok := k.Confirmed[lineage]
	return since != 0 && w.now >= since+w.policy.Grace && ok && !confirmed.Before(at(since+w.policy.Grace)) && k.API == checkpoint.APIServing && k.APICurrent
}

func (w *World) workOf(l checkpoint.Lineage) int {
	for i := range w.workloads {
		if w.workloads[i].lineage() == l {
			return i
		}
	}
	panic("an action of " + string(l))
}

func (w *World) workOfPod(uid checkpoint.UID) int {
	for i := range w.workloads {
		if strings.HasPrefix(string(uid), w.workloads[i].Name+"-") {
			return i
		}
	}
	return -1
}

func (w *World) isSelf(l checkpoint.Lineage) bool { return l == w.policy.Self }
