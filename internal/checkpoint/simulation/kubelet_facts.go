package simulation

import (
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// report writes the pods' status to the API server, and ends those that were deleted and are gone.
func (w *World) report() {
	k := &w.kubelet
	for i := range w.etcd.pods {
		p := &w.etcd.pods[i]
		p.ready = w.isReady(p.uid)
		if slices.Contains(k.evicted, p.uid) {
			p.phase = checkpoint.PodEvicted
		}
	}
	w.etcd.pods = slices.DeleteFunc(w.etcd.pods, func(p pod) bool { return p.deleting && k.worker(p.uid) == nil && !w.sandboxed(p.uid) })
	k.list = slices.Clone(w.etcd.pods)
}

func (w *World) sandboxed(uid checkpoint.UID) bool {
	return slices.ContainsFunc(w.sandboxes, func(s sandbox) bool { return s.uid == uid && s.ready })
}

// isReady says whether the kubelet has the pod running for as long as its probe takes.
func (w *World) isReady(uid checkpoint.UID) bool {
	o := w.kubelet.worker(uid)
	if o == nil || o.stage != running || o.health != fine {
		return false
	}
	s := w.sandbox(o.sandbox)
	return s != nil && s.state == checkpoint.ContainerRunning && w.now >= s.startedAt+readyAfter
}

// evict ends a pod by the kubelet's own choice.
func (w *World) evict(uid checkpoint.UID) {
	if o := w.kubelet.worker(uid); o != nil {
		w.kubelet.evicted = append(w.kubelet.evicted, uid)
		w.end(o)
	}
}

// kubeletFacts are what the kubelet's socket tells.
func (w *World) kubeletFacts() kubeletFacts {
	k := &w.kubelet
	switch {
	case w.noPodsAPI:
		return kubeletFacts{state: checkpoint.KubeletAbsent}
	case !w.powered || !k.up || w.deafToKubelet:
		return kubeletFacts{state: checkpoint.KubeletUnknown}
	case !k.synced:
		return kubeletFacts{state: checkpoint.KubeletUnsynced}
	}
	facts := kubeletFacts{state: checkpoint.KubeletSynced, managed: make(map[checkpoint.UID]checkpoint.Managed), evicted: make(map[checkpoint.UID]bool)}
	for i := range k.workers {
		if o := &k.workers[i]; !o.static() && o.stage != stopping {
			facts.managed[o.uid] = checkpoint.Managed{Ready: w.isReady(o.uid)}
		}
	}
	for _, uid := range k.evicted {
		facts.evicted[uid] = true
	}
	return facts
}
