package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Run is one history.
type Run struct {
	Seed  uint64
	Steps int
	Skip  map[int]bool // the steps in which nothing goes wrong, though chance had it so
}

// stream gives each step random numbers of its own, so that a history without one of its faults is otherwise the same.
func (r Run) stream(step int) *rand.Rand {
	return rand.New(rand.NewPCG(r.Seed, uint64(step)))
}

// Play plays the history and returns the first violation, empty if there is none, and the step of it.
func (r Run) Play(t *tale) (violation string, step int) {
	w := r.world(t)
	for step = range r.Steps {
		w.random = r.stream(step + 1)
		if w.random.IntN(3) == 0 && !r.Skip[step] {
			w.disturb()
			w.settle()
		} else if next := w.next(); next != 0 {
			w.advanceTo(next)
		} else {
			w.advanceTo(w.now + time.Minute)
		}
		if w.oracle.violation != "" {
			return w.oracle.violation, step
		}
	}
	w.random = r.stream(0)
	w.calmDown()
	return w.oracle.violation, r.Steps
}

// disturbances are what may go wrong, or be done, and how often in relation to each other.
var disturbances = []struct {
	weight int
	do     func(*World, *rand.Rand)
}{
	{6, (*World).cutPower},
	{6, func(w *World, _ *rand.Rand) { w.toggle(&w.network, "the network") }},
	{4, (*World).refuse},
	{4, (*World).restartKubelet},
	{2, func(w *World, _ *rand.Rand) { w.toggle(&w.runtimeDown, "the container runtime's outage") }},
	{2, func(w *World, _ *rand.Rand) { w.toggle(&w.deafToKubelet, "the kubelet's silence to the checkpointer") }},
	{2, func(w *World, _ *rand.Rand) { w.toggle(&w.deafToRuntime, "the runtime's silence to the checkpointer") }},
	{5, (*World).killAgent},
	{3, func(w *World, _ *rand.Rand) { w.toggle(&w.disk.full, "a full disk") }},
	{3, (*World).loseFile},
	{8, (*World).rollOut},
	{3, (*World).unschedule},
	{3, (*World).deletePod},
	{1, (*World).evictPod},
	{4, (*World).crashContainer},
	{2, func(w *World, _ *rand.Rand) { w.toggle(&w.kubelet.refuses, "the kubelet's rejection of static pods") }},
	{2, (*World).rotateSecret},
	{2, (*World).disturbEtcd},
	{2, func(w *World, _ *rand.Rand) { w.toggle(&w.late, "the lateness of events") }},
	{3, func(w *World, _ *rand.Rand) { w.agent.news = w.agent.alive }}, // an event comes twice
	{8, func(w *World, r *rand.Rand) { w.Pass(time.Duration(1+r.IntN(20)) * time.Second) }},
	{2, func(w *World, r *rand.Rand) { w.Pass(time.Duration(1+r.IntN(300)) * time.Second) }},
	{8, (*World).endFaults},
}

var weights = func() (sum int) {
	for _, d := range disturbances {
		sum += d.weight
	}
	return sum
}()

func (w *World) disturb() {
	n := w.random.IntN(weights)
	for _, d := range disturbances {
		if n -= d.weight; n < 0 {
			d.do(w, w.random)
			return
		}
	}
}

func (w *World) toggle(fault *bool, what string) {
	*fault = !*fault
	w.tell("%s: %v", what, *fault)
}

func (w *World) cutPower(r *rand.Rand) {
	if !w.powered {
		return
	}
	w.tell("power is cut")
	w.powerCut()
	w.bootAt = w.now + time.Duration(1+r.IntN(30))*time.Second
	if r.IntN(2) == 0 && w.disk.before != nil && w.now < w.disk.wroteAt+5*time.Second {
		w.tell("the disk loses the last write")
		w.disk.records, w.disk.marks = w.disk.before.records, w.disk.before.marks
		w.disk.before = nil
		w.oracle.forgive(w)
	}
}

func (w *World) refuse(r *rand.Rand) {
	w.refusal = checkpoint.API(r.IntN(5))
	if w.refusal == checkpoint.APIServing {
		w.refusal = checkpoint.APIUnknown
	}
	w.tell("the API server is to the checkpointer %v", w.refusal)
}

func (w *World) restartKubelet(r *rand.Rand) {
	if !w.powered || !w.kubelet.up {
		return
	}
	w.tell("the kubelet stops")
	w.kubelet = kubelet{refuses: w.kubelet.refuses}
	w.kubeletAt = w.now + time.Duration(1+r.IntN(20))*time.Second
}

func (w *World) killAgent(r *rand.Rand) {
	if !w.agent.alive {
		return
	}
	if w.agent.dieAfter = r.IntN(4); w.agent.dieAfter == 0 {
		w.tell("the checkpointer is killed")
		w.agentKilled()
	}
}

// loseFile is somebody else's hand in our directories.
func (w *World) loseFile(r *rand.Rand) {
	if len(w.disk.records) == 0 {
		return
	}
	c := &w.disk.records[r.IntN(len(w.disk.records))]
	state := checkpoint.File(r.IntN(2))
	if r.IntN(2) == 0 && c.Active == checkpoint.Intact {
		c.Active = state
		w.tell("somebody damages the active manifest of %s", c.Name)
	} else if c.Active == checkpoint.Intact || w.agent.alive && w.agent.dieAfter < 0 && !w.disk.full {
		c.Stored = state
		w.tell("somebody damages the stored manifest of %s", c.Name)
	}
	w.agent.news = w.agent.alive
	w.oracle.forgive(w)
}

func (w *World) rollOut(r *rand.Rand) {
	if w.etcd.blank {
		return
	}
	work := &w.workloads[r.IntN(len(w.workloads))]
	work.revision++
	work.health = fine
	if r.IntN(5) < 2 {
		work.health = health(1 + r.IntN(3))
	}
	w.tell("%s is rolled out: revision %d%s", work.Name, work.revision, describeHealth(work.health))
}

func (w *World) unschedule(r *rand.Rand) {
	work := &w.workloads[r.IntN(len(w.workloads))]
	work.wanted = !work.wanted
	w.tell("somebody wants %s on this node: %v", work.Name, work.wanted)
}

func (w *World) deletePod(r *rand.Rand) {
	if w.serves() && len(w.etcd.pods) > 0 {
		p := &w.etcd.pods[r.IntN(len(w.etcd.pods))]
		p.deleting = true
		w.tell("somebody deletes pod %s", p.uid)
	}
}

// evictPod ends a pod by the kubelet's own choice. It spares what is critical, such as the API server:
// pkg/kubelet/eviction/eviction_manager.go, evictPod.
func (w *World) evictPod(r *rand.Rand) {
	if n := len(w.kubelet.workers); n > 0 && w.kubelet.synced {
		if o := w.kubelet.workers[r.IntN(n)]; !o.static() && !w.workloads[o.work].HostsAPI {
			w.tell("the kubelet evicts pod %s", o.uid)
			w.evict(o.uid)
		}
	}
}

func (w *World) crashContainer(r *rand.Rand) {
	if len(w.sandboxes) == 0 {
		return
	}
	if s := &w.sandboxes[r.IntN(len(w.sandboxes))]; s.state == checkpoint.ContainerRunning {
		w.tell("a container of %s crashes", s.uid)
		s.exitAt = w.now
	}
}

func (w *World) rotateSecret(r *rand.Rand) {
	w.workloads[r.IntN(len(w.workloads))].secret++
}

// disturbEtcd takes a backup, goes back to it, or loses everything.
func (w *World) disturbEtcd(r *rand.Rand) {
	switch r.IntN(4) {
	case 0, 1:
		if !w.etcd.blank {
			w.backup = w.etcd.clone()
			w.tell("etcd is backed up")
		}
	case 2:
		w.etcd = w.backup.clone()
		w.tell("etcd is restored from its backup")
	default:
		w.etcd = etcd{node: w.etcd.node + 1, blank: true}
		w.tell("etcd is emptied")
	}
	w.oracle.restored(w)
}

func (e etcd) clone() etcd {
	e.pods = slices.Clone(e.pods)
	return e
}

// endFaults ends everything that goes wrong by now.
func (w *World) endFaults(*rand.Rand) {
	w.network, w.runtimeDown, w.deafToKubelet, w.deafToRuntime, w.late = true, false, false, false, false
	w.refusal, w.disk.full, w.kubelet.refuses = checkpoint.APIUnknown, false, false
	w.tell("all faults end")
}
