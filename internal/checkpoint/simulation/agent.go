package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// source is one of the agent's.
type source uint8

const (
	fromAPI source = iota
	fromKubelet
	fromRuntime
	sources
)

// apiFacts are what the API server source tells.
type apiFacts struct {
	state   checkpoint.API
	current bool
	parents []checkpoint.Parent
}

// kubeletFacts are what the kubelet source tells.
type kubeletFacts struct {
	state   checkpoint.Kubelet
	managed map[checkpoint.UID]checkpoint.Managed
	evicted map[checkpoint.UID]bool
}

// runtimeFacts are what the runtime source tells.
type runtimeFacts struct {
	state     checkpoint.Runtime
	sandboxes []checkpoint.Sandbox
}

// event is facts on their way to the agent: complete, and as they were when it was sent.
type event struct {
	due     time.Duration // zero: there is none
	api     apiFacts
	kubelet kubeletFacts
	runtime runtimeFacts
}

// agent is the checkpointer's process. What it knows dies with it.
type agent struct {
	alive   bool
	startAt time.Duration // when it starts; zero: not by itself
	leads   string        // the sandbox in which the leader runs, if it runs in a pod

	known  checkpoint.World
	sent   [sources]event // what is on its way
	told   [sources]event // what came last
	policy checkpoint.Policy
	states map[checkpoint.Lineage]checkpoint.State
	wake   time.Duration // when it wants to plan again; zero: never
	retry  time.Duration // when it tries again what failed; zero: nothing did
	news   bool          // something came in since the last plan

	asked    time.Duration // when the live LIST was asked for that is on its way
	answerAt time.Duration // when it is answered; zero: there is none
	askAgain time.Duration // not before

	dieAfter int // actions from now; negative: it does not
}

func (w *World) agentStarts() {
	now := at(w.now)
	w.agent = agent{
		alive: true, news: true, dieAfter: -1, policy: w.policy, leads: w.agent.leads,
		known: checkpoint.World{Start: now, APISince: now, KubeletSince: now, Confirmed: make(map[checkpoint.Lineage]time.Time)},
	}
	w.agent.policy.SelfName = w.leaderName()
	w.disk.records = slices.DeleteFunc(w.disk.records, func(r record) bool { // it can't read them
		return r.Stored != checkpoint.Intact && r.Active != checkpoint.Intact
	})
	w.oracle.restarted()
	w.tell("the checkpointer starts%s", w.agent.policy.SelfName)
}

func (w *World) agentDies() {
	w.agent = agent{leads: w.agent.leads}
}

// listen sends what changed on its way, and hands over what has arrived.
func (w *World) listen() {
	a := &w.agent
	if !a.alive {
		return
	}
	for s := range sources {
		if a.sent[s].due == 0 {
			if now := w.facts(s); !now.same(s, a.told[s]) || a.told[s].due == 0 {
				now.due = w.now + w.lag()
				a.sent[s] = now
			}
		}
		if e := a.sent[s]; e.due != 0 && w.now >= e.due {
			a.sent[s].due = 0
			a.told[s], a.news = e, true
			w.fold(s, e)
		}
	}
	w.answer()
}

// facts are what a source would send now.
func (w *World) facts(s source) (e event) {
	switch s {
	case fromAPI:
		e.api = apiFacts{state: w.apiState()}
		if e.api.state == checkpoint.APIServing {
			// The list comes a moment after the first answer.
			if e.api.current = w.agent.told[s].api.state == checkpoint.APIServing; e.api.current {
				e.api.parents = w.parents()
			}
		}
	case fromKubelet:
		e.kubelet = w.kubeletFacts()
	case fromRuntime:
		if w.powered && !w.runtimeDown && !w.deafToRuntime {
			e.runtime = runtimeFacts{checkpoint.RuntimeKnown, w.sandboxFacts()}
		}
	}
	return e
}

// apiState is how the API server answers the agent.
func (w *World) apiState() checkpoint.API {
	switch {
	case !w.reachable():
		return checkpoint.APILost
	case w.refusal != checkpoint.APIUnknown:
		return w.refusal
	default:
		return checkpoint.APIServing
	}
}

// fold is what the event loop does with facts that come in.
func (w *World) fold(s source, e event) {
	k := &w.agent.known
	now := at(w.now)
	switch s {
	case fromAPI:
		if k.API != e.api.state {
			k.API, k.APISince = e.api.state, now
			w.tell("the checkpointer hears the API server as %v", k.API)
		}
		if k.APICurrent = e.api.current; k.APICurrent {
			k.Parents = e.api.parents
		}
		w.oracle.heard(w)
	case fromKubelet:
		if k.Kubelet != e.kubelet.state {
			k.Kubelet, k.KubeletSince = e.kubelet.state, now
			w.tell("the checkpointer hears the kubelet as %v", k.Kubelet)
		}
		k.Managed, k.Evicted = e.kubelet.managed, e.kubelet.evicted
	case fromRuntime:
		k.Runtime, k.Sandboxes = e.runtime.state, e.runtime.sandboxes
	}
}

// identify records the Node object that the checkpoints are from, on the evidence of a pod that one was made of.
func (w *World) identify() {
	k := &w.agent.known
	if w.disk.node != 0 || !k.APICurrent {
		return
	}
	for _, r := range w.disk.records {
		for _, p := range k.Parents {
			if p.UID == r.ParentUID {
				w.disk.node = w.etcd.node
			}
		}
	}
}

// answer answers the live LIST that the agent asked for: with the truth of now, if the API server serves.
func (w *World) answer() {
	a := &w.agent
	if a.answerAt == 0 || w.now < a.answerAt {
		return
	}
	a.answerAt, a.askAgain, a.news = 0, w.now+retryTakes, true
	if w.apiState() != checkpoint.APIServing || w.etcd.node != w.disk.node {
		a.retry = soonest(a.retry, a.askAgain)
		return
	}
	clear(a.known.Confirmed)
	for _, r := range w.disk.records {
		if !w.listed(r.work) {
			a.known.Confirmed[r.Lineage] = at(a.asked)
		}
	}
	a.retry = soonest(a.retry, a.askAgain)
}

// listed says whether etcd has a pod of the workload.
func (w *World) listed(work int) bool {
	for _, p := range w.etcd.pods {
		if p.work == work {
			return true
		}
	}
	return false
}

// same says whether two events of a source tell the same.
func (e event) same(s source, o event) bool {
	switch s {
	case fromAPI:
		return e.api.state == o.api.state && e.api.current == o.api.current && slices.EqualFunc(e.api.parents, o.api.parents, sameParent)
	case fromKubelet:
		return e.kubelet.state == o.kubelet.state && maps.Equal(e.kubelet.managed, o.kubelet.managed) && maps.Equal(e.kubelet.evicted, o.kubelet.evicted)
	default:
		return e.runtime.state == o.runtime.state && slices.EqualFunc(e.runtime.sandboxes, o.runtime.sandboxes, sameSandbox)
	}
}

func sameParent(a, b checkpoint.Parent) bool {
	return a.UID == b.UID && a.Deleting == b.Deleting && a.Phase == b.Phase && a.Ready == b.Ready && a.Digest == b.Digest
}

func sameSandbox(a, b checkpoint.Sandbox) bool {
	return a.ID == b.ID && a.Ready == b.Ready && slices.Equal(a.Containers, b.Containers)
}
