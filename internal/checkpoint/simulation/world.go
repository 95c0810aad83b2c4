package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// How long things take in the model.
const (
	sandboxTakes    = 300 * time.Millisecond
	stopTakes       = time.Second
	restartTakes    = 100 * time.Millisecond
	backOff         = 10 * time.Second // of a container that crashed again, doubled each time: pkg/kubelet/kubelet.go
	maxBackOff      = 5 * time.Minute
	crashAfter      = time.Second
	readyAfter      = time.Second
	networkTakes    = time.Minute
	syncTakes       = time.Second
	apiStartTakes   = time.Second
	controllerTakes = time.Second
	agentTakes      = time.Second
	answerTakes     = 100 * time.Millisecond
	retryTakes      = time.Second
	lockTakes       = 100 * time.Millisecond
	lagTakes        = 200 * time.Millisecond
	lateTakes       = 3 * time.Second
)

var epoch = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

// at is an instant of the simulation as the core sees it.
func at(t time.Duration) time.Time { return epoch.Add(t) }

// World is the truth.
type World struct {
	now       time.Duration
	random    *rand.Rand // nil: everything takes as long as it takes on average, and nothing is late
	serial    int
	powered   bool
	bootAt    time.Duration // when power comes back; zero: not by itself
	network   bool
	kubeletAt time.Duration // when a stopped kubelet starts again
	kubelet   kubelet
	sandboxes []sandbox
	workloads []Workload
	healths   map[string]health // by manifest
	etcd      etcd
	backup    etcd
	disk      disk
	agent     agent
	policy    checkpoint.Policy
	stoodDown string // the sandbox of the copy of the checkpointer that gave the lead away
	noPodsAPI bool   // an older kubelet

	// Faults.
	runtimeDown   bool
	deafToKubelet bool
	deafToRuntime bool
	refusal       checkpoint.API // Unknown: none
	late          bool

	oracle oracle
	tale   *tale
}

// settle lets everything happen that is due now.
func (w *World) settle() {
	for range 4 {
		w.run()
		w.sync()
		w.control()
		w.elect()
		w.listen()
		w.think()
	}
	w.oracle.watch(w)
}

// next is the instant of the next event; zero if nothing is going to happen.
func (w *World) next() (t time.Duration) {
	see := func(due time.Duration) {
		if due > w.now {
			t = soonest(t, due)
		}
	}
	see(w.bootAt)
	see(w.kubeletAt)
	for i := range w.sandboxes {
		see(w.sandboxes[i].exitAt)
		if s := &w.sandboxes[i]; s.state == checkpoint.ContainerRunning {
			see(s.startedAt + lockTakes)
			see(s.startedAt + readyAfter)
		}
	}
	if w.kubelet.up {
		see(w.kubelet.syncAt)
		see(w.kubelet.networkAt)
		for i := range w.kubelet.workers {
			see(w.kubelet.workers[i].due)
		}
	}
	for i := range w.workloads {
		see(w.workloads[i].createAt)
	}
	a := &w.agent
	see(a.startAt)
	if a.alive {
		see(a.wake)
		see(a.retry)
		see(a.answerAt)
		for s := range sources {
			see(a.sent[s].due)
		}
	}
	return t
}

// advanceTo lets time pass to t, and what has been waited for outside of the agent begin.
func (w *World) advanceTo(t time.Duration) {
	w.oracle.pass(w, t-w.now)
	w.now = t
	if w.bootAt != 0 && w.now >= w.bootAt {
		w.bootAt = 0
		w.tell("power comes back")
		w.boot()
	}
	if w.kubeletAt != 0 && w.now >= w.kubeletAt && w.powered {
		w.kubeletAt = 0
		w.tell("the kubelet starts again")
		w.kubeletStarts()
	}
	w.settle()
}

// Pass lets time pass, event by event.
func (w *World) Pass(d time.Duration) {
	end := w.now + d
	for t := w.next(); t != 0 && t <= end && w.oracle.violation == ""; t = w.next() {
		w.advanceTo(t)
	}
	if w.now < end {
		w.advanceTo(end)
	}
}

func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// jitter is a duration around d.
func (w *World) jitter(d time.Duration) time.Duration {
	if w.random == nil {
		return d
	}
	return d/2 + time.Duration(w.random.Int64N(int64(d)))
}

// lag is how long facts are on their way. Without chance, they are there at once; but never before now.
func (w *World) lag() time.Duration {
	switch {
	case w.random == nil:
		return 0
	case w.late:
		return time.Duration(w.random.Int64N(int64(lateTakes)))
	default:
		return time.Duration(w.random.Int64N(int64(lagTakes)))
	}
}
