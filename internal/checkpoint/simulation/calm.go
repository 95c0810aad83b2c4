package simulation

import (
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// How long a world without faults may take until everything runs that should, and for how long nothing may happen then.
const (
	calmTakes = 20 * time.Minute
	quiet     = 30 * time.Minute
)

// calmDown ends all faults, and judges what becomes of it.
func (w *World) calmDown() {
	w.endFaults(nil)
	w.late = false
	if w.etcd.blank {
		w.etcd = w.backup.clone()
		w.oracle.restored(w)
		w.tell("etcd is restored from its backup")
	}
	if !w.powered && w.bootAt == 0 {
		w.bootAt = w.now + time.Second
	}
	if w.selfWork() < 0 && !w.agent.alive && w.agent.startAt == 0 {
		w.agent.startAt = w.now + time.Second
	}
	w.settle()
	w.Pass(calmTakes)
	if w.oracle.violation != "" {
		return
	}
	w.tell("everything has been calm for %v", calmTakes)
	for i := range w.workloads {
		w.judgeRunning(i)
	}
	w.tale.mute = w.oracle.violation != ""
	before := w.disk.clone()
	w.Pass(quiet)
	w.judgeQuiet(before)
}

// judgeRunning says whether the workload runs exactly once, if it should run.
func (w *World) judgeRunning(i int) {
	work := &w.workloads[i]
	statics, pods := w.count(i)
	wanted, works := w.shouldRun(i)
	switch {
	case work.Self && w.agent.alive, !w.agentCanRun(): // two copies of it are no fault; without any, nobody acts
	case statics > 0 && statics+pods > 1: // two pods are the cluster's own choice
		w.oracle.violated(w, "%s runs as %d checkpoints and %d pods", work.Name, statics, pods)
	case wanted && works && statics+pods == 0:
		w.oracle.violated(w, "%s should run and does not", work.Name)
	}
}

// shouldRun says whether the workload is wanted here, and whether anything of it could run.
func (w *World) shouldRun(i int) (wanted, works bool) {
	work := &w.workloads[i]
	for _, p := range w.etcd.pods {
		if p.work == i && p.phase == checkpoint.PodLive && !p.deleting {
			wanted = true
			good := p.health == fine || p.health == neverReady
			works = works || w.reachable() && good
			if work.Handover == checkpoint.HandoverExclusive && !good {
				return false, false // a checkpoint beside it could be one copy too many
			}
		}
	}
	if !w.serves() && work.HostsAPI {
		wanted = work.wanted
	}
	for _, r := range w.disk.records {
		works = works || r.work == i && (r.health == fine || r.health == neverReady)
	}
	for j := range w.workloads { // of two that need one port only one can run, and it may be one that does not work
		if o := &w.workloads[j]; j != i && work.Port != "" && o.Port == work.Port && (o.wanted || w.disk.usable(j) > 0) {
			wanted = false
		}
	}
	return wanted && w.agentCanRun(), works
}

// agentCanRun says whether a checkpointer could be running here.
func (w *World) agentCanRun() bool { return w.selfWork() < 0 || w.agent.alive }

// judgeQuiet says whether the disk is as it was, but for generations that went for their age.
func (w *World) judgeQuiet(before *disk) {
	for _, r := range w.disk.records {
		was := before.find(r.Name, r.Previous)
		if was == nil || was.Active != r.Active || was.nonce != r.nonce || was.Stored != r.Stored || was.Digest != r.Digest {
			w.oracle.violated(w, "the checkpoint of %s is still being changed", r.Name)
		}
	}
	for _, r := range before.records {
		if w.disk.find(r.Name, r.Previous) == nil && w.disk.usable(r.work) == 0 {
			w.oracle.violated(w, "the checkpoint of %s went away", r.Name)
		}
	}
	for i := range w.workloads {
		w.judgeRunning(i)
	}
}
