package simulation

import (
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// adopt goes on with the pod's READY sandbox if there is one.
func (w *World) adopt(o *worker) {
	for i := range w.sandboxes {
		if s := &w.sandboxes[i]; s.uid == o.uid && s.ready {
			o.sandbox, o.stage = s.id, pulling
			if s.state != checkpoint.ContainerUnknown {
				o.stage = running
			} else {
				o.due = w.now + w.workloads[o.work].StartTakes
			}
			return
		}
	}
}

func (w *World) end(o *worker) {
	if o.stage != stopping {
		o.stage = stopping
		if s := w.sandbox(o.sandbox); s != nil {
			w.stop(s)
		}
	}
}

// gone says whether nothing of a worker is left.
func (w *World) gone(o *worker) bool {
	s := w.sandbox(o.sandbox)
	return s == nil || !s.ready && s.state != checkpoint.ContainerRunning
}

// advance brings a pod one stage further if that is due.
func (w *World) advance(o *worker) {
	s := w.sandbox(o.sandbox)
	if o.lost {
		return // nobody restarts it
	}
	switch o.stage {
	case queued:
		if !w.nameTaken(o) {
			o.stage = admitted
		}
	case admitted:
		if w.workloads[o.work].Port != "" || w.now >= w.kubelet.networkAt {
			o.stage, o.due = making, w.now+sandboxTakes
		}
	case making:
		if w.now >= o.due {
			o.sandbox, o.stage, o.due = w.makeSandbox(o), pulling, w.now+w.workloads[o.work].StartTakes
		}
	case pulling:
		if s == nil || !s.ready {
			o.stage, o.due = making, w.now+sandboxTakes
		} else if w.now >= o.due && o.health != unpullable {
			w.start(s)
			o.stage = running
		}
	case running:
		w.watchContainer(o, s)
	case waiting:
		if s == nil || !s.ready {
			o.stage, o.due = making, w.now+sandboxTakes
		} else if w.now >= o.due {
			w.start(s)
			o.stage = running
		}
	}
}

// watchContainer restarts a container that has exited: at once the first time, then after the back-off.
func (w *World) watchContainer(o *worker, s *sandbox) {
	switch {
	case s == nil || !s.ready:
		o.stage, o.due, o.crashes = making, w.now+sandboxTakes, 0
	case s.state == checkpoint.ContainerExited && !s.ending:
		o.stage, o.due = waiting, w.now+restartTakes
		if w.now-s.startedAt > 2*maxBackOff {
			o.crashes = 0
		}
		if o.crashes > 0 {
			o.due = w.now + min(backOff<<min(o.crashes-1, 5), maxBackOff)
		}
		o.crashes = min(o.crashes+1, 6) // more make no difference
	}
}

// nameTaken says whether another static pod of that name is not gone yet: pkg/kubelet/pod_workers.go serialises them.
func (w *World) nameTaken(o *worker) bool {
	return o.static() && slices.ContainsFunc(w.kubelet.workers, func(other worker) bool {
		return other.static() && other.name == o.name && other.uid != o.uid && other.stage != queued
	})
}
