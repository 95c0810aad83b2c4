package simulation

import (
	"errors"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// worth is what the disk is worth to each workload.
type worth struct {
	usable, good int // checkpoints that could be activated, and those of them that are known to run
}

func (o *oracle) before(w *World) []worth {
	worths := make([]worth, len(w.workloads))
	for i := range worths {
		worths[i].usable = w.disk.usable(i)
	}
	for _, r := range w.disk.records {
		if r.health == fine && (r.Stored == checkpoint.Intact || r.Active == checkpoint.Intact) {
			worths[r.work].good++
		}
	}
	return worths
}

// wrote judges one write to the disk.
func (o *oracle) wrote(w *World, a checkpoint.Action, err error, before []worth) {
	if err != nil {
		if !errors.Is(err, errFull) && a.Kind != checkpoint.Save {
			o.violated(w, "%v of %s (%s) can't be done: %v", a.Kind, a.Name, a.Reason, err)
		}
		return
	}
	work := w.workOf(a.Lineage)
	after := o.before(w)
	for i := range after {
		if w.confirmedGone(i) || w.disk.full { // then what somebody else took can't be restored, only remembered
			continue
		}
		if before[i].usable > 0 && after[i].usable == 0 {
			o.violated(w, "%v of %s (%s) leaves %s without a checkpoint, and it is not confirmed that it is gone", a.Kind, a.Name, a.Reason, w.workloads[i].Name)
		}
		if before[i].good > 0 && after[i].good == 0 && !w.workloads[i].Self {
			o.violated(w, "%v of %s (%s) leaves %s without a checkpoint that works", a.Kind, a.Name, a.Reason, w.workloads[i].Name)
		}
	}
	switch r := w.disk.find(a.Name, a.Previous); {
	case a.Kind == checkpoint.Retry && w.runs(r):
		o.violated(w, "the active manifest of %s, which runs, is changed", a.Name)
	case a.Kind == checkpoint.Activate && r.Stored != checkpoint.Intact && !w.disk.full:
		o.violated(w, "%s is active and not stored", a.Name)
	case a.Kind == checkpoint.Remove && o.stillRuns(w, a) && !w.isSelf(a.Lineage):
		o.violated(w, "%s is removed while its checkpoint runs", a.Name)
	case a.Kind == checkpoint.Withdraw && a.Reason == checkpoint.ReasonRemovalStopping:
		if o.works[work].cuts++; o.works[work].cuts > 1 && w.workloads[work].HostsAPI {
			o.violated(w, "%s, on which the API server lives, is withdrawn for its removal a second time", a.Name)
		}
	}
}

// runs says whether the record's active manifest, as it was before a nonce, has run for a while.
func (w *World) runs(r *record) bool {
	before := *r
	before.nonce--
	for i := range w.sandboxes {
		s := &w.sandboxes[i]
		if s.uid == before.hash() && s.state == checkpoint.ContainerRunning && !s.ending && w.now > s.startedAt+2*lateTakes {
			return !w.deafToRuntime && !w.runtimeDown
		}
	}
	return false
}

// stillRuns says whether the agent knows of a sandbox of the checkpoint that is READY.
func (o *oracle) stillRuns(w *World, a checkpoint.Action) bool {
	for i := range w.agent.known.Sandboxes {
		if s := &w.agent.known.Sandboxes[i]; s.CheckpointOf == a.Name && s.Ready {
			return true
		}
	}
	return false
}

// stopped judges the stop of a pod's sandbox: it must not end what does its work alone.
func (o *oracle) stopped(w *World, s *sandbox, a checkpoint.Action) {
	if s.static() {
		o.violated(w, "%v of the sandbox of a checkpoint, %s", a.Kind, s.uid)
	}
	if a.Kind == checkpoint.Kick && s.state == checkpoint.ContainerRunning && w.now > s.startedAt+lateTakes {
		o.violated(w, "%s is kicked while it runs", s.uid)
	}
}

// watch judges the world as it is now.
func (o *oracle) watch(w *World) {
	for i := range w.sandboxes {
		if s := &w.sandboxes[i]; !s.static() && s.state == checkpoint.ContainerRunning && s.health == fine {
			o.works[s.work].cuts = 0
		}
	}
	for _, p := range w.etcd.pods {
		if !p.deleting {
			o.works[p.work].cuts = 0 // what is removed after that is another removal
		}
	}
}

// pass judges the time that has passed: two copies of a workload run side by side only while one hands over to the other.
func (o *oracle) pass(w *World, d time.Duration) {
	for i := range o.works {
		j := &o.works[i]
		if statics, pods := w.count(i); statics == 0 || statics+pods < 2 || !w.trusted() || w.workloads[i].Self {
			j.overlap = 0
			continue
		}
		j.overlap += d
		if limit := w.handoverLimit(&w.workloads[i]); j.overlap > limit {
			o.violated(w, "two copies of %s have run for %v, though nothing goes wrong", w.workloads[i].Name, j.overlap)
		}
	}
}

// count counts the running copies of a workload: its checkpoints', and its pods'.
func (w *World) count(work int) (statics, pods int) {
	for i := range w.sandboxes {
		s := &w.sandboxes[i]
		switch {
		case s.work != work || s.state != checkpoint.ContainerRunning || s.health == crashes:
		case s.static():
			statics++
		default:
			pods++
		}
	}
	return statics, pods
}

// trusted says whether the agent can know all and do all.
func (w *World) trusted() bool {
	return w.powered && w.network && w.kubelet.up && w.kubelet.synced && w.agent.alive && w.serves() && w.refusal == checkpoint.APIUnknown &&
		!w.runtimeDown && !w.deafToKubelet && !w.deafToRuntime && !w.late && !w.disk.full && !w.noPodsAPI
}

// handoverLimit is for how long the two may run side by side by the documentation.
func (w *World) handoverLimit(work *Workload) time.Duration {
	const slack = 5 * time.Second // for events on their way, and a container's end
	if work.Handover == checkpoint.HandoverReady {
		return w.policy.StuckAfter + w.policy.PromoteAfter + slack
	}
	return slack
}

// forgive notes that something was lost by what nobody could prevent.
func (o *oracle) forgive(*World) {
	for i := range o.works {
		o.works[i].cuts, o.works[i].overlap = 0, 0
	}
}

// restored notes that the API server has another past now.
func (o *oracle) restored(w *World) { o.forgive(w) }
