package simulation

import (
	"maps"
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// think plans and applies until a plan writes nothing more, if there is news or it is time.
func (w *World) think() {
	a := &w.agent
	if !a.alive {
		return
	}
	due := a.wake != 0 && w.now >= a.wake || a.retry != 0 && w.now >= a.retry
	if !a.news && !due {
		return
	}
	a.news, a.retry = false, 0
	for round := 0; a.alive; round++ {
		w.identify()
		a.known.Now, a.known.Disk = at(w.now), w.disk.list()
		// What is passed is a copy where Plan could keep it: nothing it keeps may change under its feet.
		next, actions, wake := checkpoint.Plan(maps.Clone(a.states), a.known, a.policy)
		w.oracle.planned(w, actions)
		a.states, a.wake = next, 0
		if !wake.IsZero() {
			a.wake = wake.Sub(epoch)
		}
		if !w.apply(actions) {
			return
		}
		if round > 8 {
			w.oracle.violated(w, "planning again after applying asks for more and more: %v", actions)
			return
		}
	}
}

// apply carries out the actions, and says whether it wrote to the disk. The agent may die before any of them.
func (w *World) apply(actions []checkpoint.Action) (written bool) {
	a := &w.agent
	for _, action := range actions {
		if a.dieAfter == 0 {
			w.tell("the checkpointer is killed before it does %v of %s", action.Kind, action.Name)
			w.agentKilled()
			return false
		}
		a.dieAfter--
		switch action.Kind {
		case checkpoint.Confirm:
			w.ask()
		case checkpoint.StopSandbox, checkpoint.Kick:
			w.stopForAgent(action)
		case checkpoint.StepDown:
			w.stepDown(action)
			return false
		default:
			before := w.oracle.before(w)
			err := w.write(action)
			w.oracle.wrote(w, action, err, before)
			if err != nil {
				a.retry = soonest(a.retry, w.now+retryTakes)
				continue
			}
			written = true
			w.tell("the checkpointer does %v of %s%s: %s", action.Kind, action.Name+string(action.UID), previousWord(action.Previous), action.Reason)
		}
	}
	return written
}

func previousWord(previous bool) string {
	if previous {
		return ", the generation before"
	}
	return ""
}

// ask asks for a live LIST, if none is on its way and the last is not of just now.
func (w *World) ask() {
	a := &w.agent
	switch {
	case a.answerAt != 0:
	case w.now < a.askAgain:
		a.retry = soonest(a.retry, a.askAgain)
	default:
		a.asked, a.answerAt = w.now, w.now+answerTakes
	}
}

// stopForAgent stops a sandbox over CRI: without the container's grace, if that has exited.
func (w *World) stopForAgent(action checkpoint.Action) {
	s := w.sandbox(action.Sandbox)
	if s == nil || w.runtimeDown {
		return
	}
	w.tell("the checkpointer has the sandbox of %s stopped: %s", s.uid, action.Reason)
	w.oracle.stopped(w, s, action)
	if s.state == checkpoint.ContainerRunning {
		w.stop(s)
		return
	}
	s.stopNow()
	if action.Kind == checkpoint.Kick {
		w.sandboxes = slices.DeleteFunc(w.sandboxes, func(o sandbox) bool { return o.id == action.Sandbox })
	}
}
