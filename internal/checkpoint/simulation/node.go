package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// sandbox is a pod sandbox of the container runtime, with its only container.
type sandbox struct {
	id           string
	uid          checkpoint.UID
	name         string
	checkpointOf string
	work         int
	health       health
	ready        bool
	created      time.Duration
	state        checkpoint.ContainerState // Unknown: there is no container
	startedAt    time.Duration
	exitAt       time.Duration // when the container exits; zero: not by itself
	ending       bool          // it was told to stop; exitAt is when it has
}

func (s *sandbox) static() bool { return s.checkpointOf != "" }

func (w *World) sandbox(id string) *sandbox {
	for i := range w.sandboxes {
		if w.sandboxes[i].id == id {
			return &w.sandboxes[i]
		}
	}
	return nil
}

// makeSandbox makes a READY sandbox without a container.
func (w *World) makeSandbox(k *worker) string {
	s := sandbox{
		id: w.newID(), uid: k.uid, name: k.name, checkpointOf: k.checkpointOf,
		work: k.work, health: k.health, ready: true, created: w.now,
	}
	w.sandboxes = append(w.sandboxes, s)
	return s.id
}

// newID is an ID that was never used. Without chance, it is the first that is free, so that equal states look equal.
func (w *World) newID() string {
	if w.serial++; w.random == nil {
		for w.serial = 1; w.sandbox(fmt.Sprintf("sandbox-%d", w.serial)) != nil; {
			w.serial++
		}
	}
	return fmt.Sprintf("sandbox-%d", w.serial)
}

// start starts the sandbox's container, which exits at once if another process holds the port that it needs.
func (w *World) start(s *sandbox) {
	s.state, s.startedAt, s.exitAt = checkpoint.ContainerRunning, w.now, 0
	if holder := w.holder(s); holder != "" {
		s.state = checkpoint.ContainerExited
		w.tell("the container of %s exits: %s holds its port", s.uid, holder)
		return
	}
	if s.health == crashes {
		s.exitAt = w.now + crashAfter
	}
}

// holder is whoever has bound the port that the sandbox's process needs. A process that is told to stop may free its port
// at once or at its end; here it does so at its end, the harder case.
func (w *World) holder(s *sandbox) checkpoint.UID {
	work := &w.workloads[s.work]
	for i := range w.sandboxes {
		o := &w.sandboxes[i]
		other := &w.workloads[o.work]
		shared := o.work == s.work && work.Handover == checkpoint.HandoverReady
		if o.id != s.id && o.state == checkpoint.ContainerRunning && work.Port != "" && other.Port == work.Port && !shared {
			return o.uid
		}
	}
	return ""
}

// stop stops a sandbox: its container gets its grace, and then it is NOTREADY.
func (w *World) stop(s *sandbox) {
	if !s.ending {
		s.ending, s.exitAt = true, w.now+stopTakes
	}
	if s.state != checkpoint.ContainerRunning {
		s.exitAt = w.now
	}
}

// stopNow is what StopPodSandbox does to a container that has exited already, or is given no grace.
func (s *sandbox) stopNow() {
	s.ready, s.ending = false, false
	if s.state != checkpoint.ContainerUnknown {
		s.state = checkpoint.ContainerExited
	}
	s.exitAt = 0
}

// run lets the runtime's due events happen, and forgets dead sandboxes that nobody needs.
func (w *World) run() {
	for i := range w.sandboxes {
		s := &w.sandboxes[i]
		if s.exitAt == 0 || w.now < s.exitAt {
			continue
		}
		if s.ending {
			s.stopNow()
		} else {
			s.state, s.exitAt = checkpoint.ContainerExited, 0
		}
	}
	w.sandboxes = slices.DeleteFunc(w.sandboxes, func(s sandbox) bool {
		return !s.ready && w.kubelet.up && w.kubelet.synced && w.kubelet.of(s.id) == nil
	})
}

// powerCut takes everything but the disks.
func (w *World) powerCut() {
	w.powered = false
	w.kubelet = kubelet{}
	w.agentDies()
	for i := range w.sandboxes {
		w.sandboxes[i].stopNow() // containerd recovers them so
	}
	w.oracle.forgive(w)
}

// boot starts the node.
func (w *World) boot() {
	w.powered = true
	w.kubeletStarts()
	if w.random != nil && w.random.IntN(4) == 0 {
		w.kubelet.networkAt = w.now + w.jitter(networkTakes)
		w.tell("the pod network will take until %v", w.kubelet.networkAt)
	}
	w.agent.startAt = w.now + w.jitter(agentTakes)
}

// sandboxFacts is the runtime's list.
func (w *World) sandboxFacts() (list []checkpoint.Sandbox) {
	for i := range w.sandboxes {
		s := &w.sandboxes[i]
		fact := checkpoint.Sandbox{
			ID: s.id, UID: s.uid, Namespace: namespace, Name: s.name, CheckpointOf: s.checkpointOf, FromFile: s.static(),
			Ready: s.ready, Created: at(s.created),
		}
		if s.state != checkpoint.ContainerUnknown {
			fact.Containers = []checkpoint.Container{{Name: "main", State: s.state}}
		}
		list = append(list, fact)
	}
	return list
}
