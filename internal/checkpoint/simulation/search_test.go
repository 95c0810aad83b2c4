package simulation

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// The search visits every state that a small world can reach when up to a number of things happen to it, each at any
// instant at which anything happens. Time passes from event to event, nothing is left to chance, and instants count by how
// far they are from now, but for those that are further back than any timer looks.

// happening is one thing that may happen to the world.
type happening struct {
	name string
	can  func(*World) bool
	do   func(*World)
}

var happenings = []happening{
	{"power is cut, and is back 5 s later", func(w *World) bool { return w.powered }, func(w *World) {
		w.powerCut()
		w.bootAt = w.now + 5*time.Second
	}},
	{"the network goes", func(w *World) bool { return w.network }, func(w *World) { w.network = false }},
	{"the network is back", func(w *World) bool { return !w.network }, func(w *World) { w.network = true }},
	{"the kubelet restarts", func(w *World) bool { return w.kubelet.up }, func(w *World) {
		w.kubelet = kubelet{}
		w.kubeletAt = w.now + 2*time.Second
	}},
	{"the checkpointer is killed", func(w *World) bool { return w.agent.alive }, (*World).agentKilled},
	{"the checkpointer dies at its next action", func(w *World) bool { return w.agent.alive && w.agent.dieAfter < 0 }, func(w *World) { w.agent.dieAfter = 0 }},
	{"the API server refuses the checkpointer", func(w *World) bool { return w.refusal == 0 }, func(w *World) { w.refusal = checkpoint.APIRefusing }},
	{"the API server accepts the checkpointer", func(w *World) bool { return w.refusal != 0 }, func(w *World) { w.refusal = 0 }},
	{"a crashing revision is rolled out", canRollOut, func(w *World) { w.workloads[0].revision++; w.workloads[0].health = crashes }},
	{"a good revision is rolled out", canRollOut, func(w *World) { w.workloads[0].revision++; w.workloads[0].health = fine }},
	{"it is no longer wanted here", func(w *World) bool { return w.workloads[0].wanted }, func(w *World) { w.workloads[0].wanted = false }},
	{"it is wanted here", func(w *World) bool { return !w.workloads[0].wanted }, func(w *World) { w.workloads[0].wanted = true }},
	{"the runtime stops answering", func(w *World) bool { return !w.runtimeDown }, func(w *World) { w.runtimeDown = true }},
	{"the runtime answers again", func(w *World) bool { return w.runtimeDown }, func(w *World) { w.runtimeDown = false }},
}

func canRollOut(w *World) bool { return w.workloads[0].wanted && w.workloads[0].revision < 3 }

// node is a state on the way, and how it was reached.
type node struct {
	world *World
	left  int // how many things may still happen
	path  *path
}

type path struct {
	before *path
	what   string
	now    time.Duration
}

func (p *path) String() string {
	var lines []string
	for ; p != nil; p = p.before {
		if p.what != "" {
			lines = append(lines, p.now.String()+" "+p.what)
		}
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

func TestEveryReachableState(t *testing.T) {
	web := Workload{Name: "web", Controller: daemonSet, StartTakes: 300 * time.Millisecond}
	api := Workload{Name: "api", Controller: daemonSet, StartTakes: 300 * time.Millisecond, Handover: checkpoint.HandoverCreated, Port: "6443/TCP", HostsAPI: true}
	db := Workload{Name: "db", Controller: statefulSet, StartTakes: 300 * time.Millisecond, Handover: checkpoint.HandoverExclusive}
	dns := Workload{Name: "dns", Controller: daemonSet, StartTakes: 300 * time.Millisecond, Handover: checkpoint.HandoverCreated, Port: "53/UDP"}
	cache := dns
	cache.Name = "cache"
	happen := int(setting(t, "DEPTH", depth))
	for _, c := range []struct {
		name      string
		workloads []Workload
	}{
		{"one on the pod network", []Workload{web}},
		{"one that the API server lives in", []Workload{api}},
		{"one with data of its own", []Workload{db}},
		{"two that need one port", []Workload{dns, cache}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			states, ends := search(t, c.workloads, happen)
			t.Logf("%d distinct states, all that can be reached when up to %d things happen; %d of them at rest", states, happen, ends)
		})
	}
}

// search visits all states, and says how many there are and in how many of them nothing more is going to happen.
func search(t *testing.T, workloads []Workload, happen int) (states, ends int) {
	policy := checkpoint.DefaultPolicy()
	policy.KeepPrevious = 10 * time.Minute
	start := NewWorld(slices.Clone(workloads), policy, &tale{mute: true})
	start.Pass(20 * time.Minute)
	seed := maphash.MakeSeed()
	seen := make(map[uint64]bool)
	queue := []node{{world: start, left: happen}}
	for len(queue) > 0 {
		n := queue[0]
		queue[0], queue = node{}, queue[1:]
		if n.world.oracle.violation != "" {
			t.Fatalf("%s\n%v", n.world.oracle.violation, n.path)
		}
		key := n.world.key(seed, n.left)
		if seen[key] {
			continue
		}
		seen[key] = true
		if next := n.world.next(); next != 0 {
			w := n.world.clone()
			w.advanceTo(next)
			queue = append(queue, node{w, n.left, n.path})
		} else {
			ends++
			w := n.world.clone()
			if w.calmDown(); w.oracle.violation != "" {
				t.Fatalf("%s\n%v", w.oracle.violation, n.path)
			}
		}
		for i := range happenings {
			if h := &happenings[i]; n.left > 0 && h.can(n.world) {
				w := n.world.clone()
				h.do(w)
				w.settle()
				queue = append(queue, node{w, n.left - 1, &path{n.path, h.name, w.now}})
			}
		}
	}
	return len(seen), ends
}

func (w *World) clone() *World {
	c := *w
	c.sandboxes, c.workloads, c.healths = slices.Clone(w.sandboxes), slices.Clone(w.workloads), maps.Clone(w.healths)
	c.kubelet.workers, c.kubelet.list = slices.Clone(w.kubelet.workers), slices.Clone(w.kubelet.list)
	c.kubelet.rejected, c.kubelet.evicted = slices.Clone(w.kubelet.rejected), slices.Clone(w.kubelet.evicted)
	c.etcd, c.backup, c.disk = w.etcd.clone(), w.backup.clone(), *w.disk.clone()
	c.agent.known.Confirmed = maps.Clone(w.agent.known.Confirmed)
	c.oracle.works = slices.Clone(w.oracle.works)
	return &c
}

// longAgo is further back than any timer looks.
const longAgo = 11 * time.Minute

// print prints what makes a difference to the future into bytes, with each instant as its distance from now.
type print struct {
	now time.Duration
	out []byte
}

// key is a hash of all that makes a difference to the future.
func (w *World) key(seed maphash.Seed, left int) uint64 {
	p := print{now: w.now, out: binary.AppendVarint(nil, int64(left))}
	for _, part := range []any{
		w.powered, w.network, w.bootAt, w.kubeletAt, w.kubelet, w.sandboxes, w.workloads, w.etcd.pods, w.disk.records, w.disk.marks,
		w.refusal, w.runtimeDown, w.agent.alive, w.agent.startAt, w.agent.known, w.agent.sent, w.agent.states, w.agent.wake, w.agent.retry,
		w.agent.news, w.agent.answerAt, w.agent.askAgain, w.agent.dieAfter,
	} {
		p.value(reflect.ValueOf(part), "")
	}
	return maphash.Bytes(seed, p.out)
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
)

func (p *print) value(v reflect.Value, name string) {
	switch {
	case v.Type() == timeType:
		if seconds := v.Field(1).Int(); seconds != 0 {
			const epochSeconds = 63932112000 // of epoch since the year 1, which a time.Time counts from
			p.instant(time.Duration(seconds-epochSeconds)*time.Second + time.Duration(v.Field(0).Uint()))
			return
		}
		p.out = append(p.out, 'z')
	case v.Type() == durationType && name != "Total" && name != "StartTakes":
		p.instant(time.Duration(v.Int()))
	case v.Type() == durationType:
		p.out = binary.AppendVarint(p.out, min(v.Int(), int64(longAgo)))
	default:
		p.other(v)
	}
}

func (p *print) instant(t time.Duration) {
	if t == 0 {
		p.out = append(p.out, 'z')
		return
	}
	p.out = binary.AppendVarint(append(p.out, 't'), int64(max(t-p.now, -longAgo)))
}

func (p *print) other(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		p.out = append(p.out, map[bool]byte{true: 1}[v.Bool()])
	case reflect.String:
		p.out = append(append(p.out, v.String()...), 0)
	case reflect.Int, reflect.Int64:
		p.out = binary.AppendVarint(p.out, v.Int())
	case reflect.Uint8, reflect.Uint64:
		p.out = binary.AppendUvarint(p.out, v.Uint())
	case reflect.Slice, reflect.Array:
		p.out = append(p.out, byte(v.Len()))
		for i := range v.Len() {
			p.value(v.Index(i), "")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			p.value(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		p.out = append(p.out, byte(len(keys)))
		for _, k := range keys {
			p.value(k, "")
			p.value(v.MapIndex(k), "")
		}
	default:
		panic("no print of " + v.Type().String())
	}
}
