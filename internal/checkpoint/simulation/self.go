package simulation

import (
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// The checkpointer runs in pods of the node: the DaemonSet's and the static one. A lock lets one of them lead. Without such
// a workload in the world, something outside starts it again.

func (w *World) selfWork() int {
	return slices.IndexFunc(w.workloads, func(o Workload) bool { return o.Self })
}

// copies are the running containers of the checkpointer.
func (w *World) copies() (running []*sandbox) {
	self := w.selfWork()
	for i := range w.sandboxes {
		if s := &w.sandboxes[i]; s.work == self && s.state == checkpoint.ContainerRunning && s.ready {
			running = append(running, s)
		}
	}
	return running
}

// elect starts the agent where it can run.
func (w *World) elect() {
	a := &w.agent
	if w.selfWork() < 0 {
		if !a.alive && w.powered && a.startAt != 0 && w.now >= a.startAt {
			w.agentStarts()
		}
		return
	}
	if a.alive {
		if s := w.sandbox(a.leads); s != nil && s.state == checkpoint.ContainerRunning && w.powered {
			return
		}
		w.tell("the leading checkpointer's container has ended")
		w.agentDies()
	}
	for _, s := range w.copies() {
		if w.now >= s.startedAt+lockTakes && s.id != w.stoodDown {
			w.lead(s)
			return
		}
	}
	if s := w.sandbox(w.stoodDown); s != nil && s.state == checkpoint.ContainerRunning && len(w.copies()) == 1 {
		w.lead(s) // nobody else is there: it takes the lock again
	}
}

func (w *World) lead(s *sandbox) {
	w.agent.leads, w.stoodDown = s.id, ""
	w.agentStarts()
	if s.health == neverReady {
		s.exitAt = w.now + crashAfter // it crashes as soon as it has something to do
	}
}

func (w *World) leaderName() string {
	if s := w.sandbox(w.agent.leads); s != nil {
		return s.name
	}
	return ""
}

// stepDown gives the lead away: the process stays, and waits for the lock again.
func (w *World) stepDown(action checkpoint.Action) {
	w.tell("the checkpointer gives the lead to revision %s", action.Name)
	w.stoodDown = w.agent.leads
	w.agentDies()
	w.agent.leads = ""
}

// agentKilled is a crash: its container exits, or whoever started it does so again.
func (w *World) agentKilled() {
	if s := w.sandbox(w.agent.leads); s != nil && w.selfWork() >= 0 {
		s.exitAt = w.now
	}
	w.agentDies()
	w.agent.startAt = w.now + w.jitter(agentTakes)
}
