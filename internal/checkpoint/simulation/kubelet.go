package simulation

import (
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// stage is how far the kubelet has come with a pod.
type stage uint8

const (
	queued   stage = iota // another static pod of its name is not gone yet
	admitted              // it waits for the pod network, unless it is on the host's
	making                // its sandbox is being made
	pulling               // its sandbox is there, its container is not
	running               // its container was started
	waiting               // its container has exited, and is started again at due
	stopping              // it is to end
)

// worker is a pod that the kubelet has in hand: a static pod, or one of the API server's.
type worker struct {
	uid          checkpoint.UID
	name         string
	checkpointOf string // of a static pod
	work         int
	health       health

	stage   stage
	due     time.Duration
	sandbox string
	crashes int
	lost    bool // a static pod whose file went while the kubelet stops nothing
}

func (k *worker) static() bool { return k.checkpointOf != "" }

// kubelet is the kubelet's process.
type kubelet struct {
	up        bool
	networkAt time.Duration // when the pod network is ready: its own agent must start first
	synced    bool          // it has seen the API server since its own start
	syncAt    time.Duration
	refuses   bool // its admission rejects static pods
	workers   []worker
	list      []pod            // the API server's, as it last saw them
	rejected  []checkpoint.UID // the static pods that it rejected: it never looks at their UID again
	evicted   []checkpoint.UID
}

func (k *kubelet) worker(uid checkpoint.UID) *worker {
	for i := range k.workers {
		if k.workers[i].uid == uid {
			return &k.workers[i]
		}
	}
	return nil
}

// of is the worker of a sandbox.
func (k *kubelet) of(id string) *worker {
	for i := range k.workers {
		if k.workers[i].sandbox == id {
			return &k.workers[i]
		}
	}
	return nil
}

func (w *World) kubeletStarts() {
	w.kubelet = kubelet{up: true, refuses: w.kubelet.refuses}
}

// sync lets the kubelet compare its sources with its workers.
func (w *World) sync() {
	k := &w.kubelet
	if !w.powered || !k.up || w.runtimeDown {
		return // syncLoop pauses while the runtime is unhealthy: pkg/kubelet/kubelet.go
	}
	w.syncStatic()
	if !k.synced {
		w.awaitAPI()
	}
	if k.synced {
		if w.reachable() {
			k.list = slices.Clone(w.etcd.pods)
		}
		w.syncAPI()
	}
	for i := range k.workers {
		w.advance(&k.workers[i])
	}
	k.workers = slices.DeleteFunc(k.workers, func(o worker) bool { return o.stage == stopping && w.gone(&o) })
	if k.synced && w.reachable() {
		w.report()
	}
}

// awaitAPI waits for the first list: sourcesReady, pkg/kubelet/config/config.go. Until then the kubelet kills nothing.
func (w *World) awaitAPI() {
	k := &w.kubelet
	switch {
	case !w.reachable():
		k.syncAt = 0
	case k.syncAt == 0:
		k.syncAt = w.now + w.jitter(syncTakes)
	case w.now >= k.syncAt:
		k.synced, k.syncAt = true, 0
		w.tell("the kubelet has seen the API server")
	}
}

// syncStatic takes up and drops static pods. Their UID is a hash of content and path, so that changed bytes are another
// pod: pkg/kubelet/config/common.go.
func (w *World) syncStatic() {
	k := &w.kubelet
	files := w.disk.manifests()
	for _, f := range files {
		if o := k.worker(f.uid); o != nil {
			o.lost = false
			continue
		}
		if slices.Contains(k.rejected, f.uid) {
			continue
		}
		if k.refuses && !w.sandboxed(f.uid) { // what ran before is taken to be admitted again
			k.rejected = append(k.rejected, f.uid)
			w.tell("the kubelet rejects the static pod of %s", f.name)
			continue
		}
		o := worker{uid: f.uid, name: f.name, checkpointOf: f.name, work: f.work, health: f.health}
		w.adopt(&o)
		k.workers = append(k.workers, o)
	}
	wanted := func(uid checkpoint.UID) bool {
		return slices.ContainsFunc(files, func(f staticFile) bool { return f.uid == uid })
	}
	k.rejected = slices.DeleteFunc(k.rejected, func(uid checkpoint.UID) bool { return !wanted(uid) })
	for i := range k.workers {
		if o := &k.workers[i]; o.static() && !wanted(o.uid) {
			o.lost = true
			if k.synced {
				w.end(o)
			}
		}
	}
}

// syncAPI takes up and drops the API server's pods.
func (w *World) syncAPI() {
	k := &w.kubelet
	listed := func(uid checkpoint.UID) *pod {
		for i := range k.list {
			if p := &k.list[i]; p.uid == uid && p.phase == checkpoint.PodLive && !p.deleting {
				return p
			}
		}
		return nil
	}
	for i := range k.list {
		p := &k.list[i]
		if listed(p.uid) != nil && k.worker(p.uid) == nil && !slices.Contains(k.evicted, p.uid) {
			o := worker{uid: p.uid, name: p.name, work: p.work, health: p.health}
			w.adopt(&o)
			k.workers = append(k.workers, o)
		}
	}
	for i := range k.workers {
		if o := &k.workers[i]; !o.static() && listed(o.uid) == nil {
			w.end(o)
		}
	}
	for i := range w.sandboxes { // what nobody has in hand
		if s := &w.sandboxes[i]; s.ready && k.worker(s.uid) == nil {
			w.stop(s)
		}
	}
}
