package checkpoint

import (
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// random is a world with up to three lineages in any combination of facts, and any state that could precede it.
func random(r *rand.Rand) (map[Lineage]State, World, Policy) {
	p := DefaultPolicy()
	p.Self = "l0"
	w := World{
		Now: epoch.Add(time.Hour), Start: ago(r), APISince: ago(r), KubeletSince: ago(r),
		API: API(r.IntN(5)), Kubelet: Kubelet(r.IntN(4)), Runtime: Runtime(r.IntN(2)),
		Managed: map[UID]Managed{}, Confirmed: map[Lineage]time.Time{}, Disk: Disk{Known: true},
	}
	w.APICurrent = w.API == APIServing && r.IntN(4) > 0
	prev := map[Lineage]State{}
	for i := range 3 {
		l := Lineage(fmt.Sprintf("l%d", i))
		if r.IntN(2) == 0 {
			prev[l] = State{Phase: Phase(r.IntN(5)), Reason: reasons[r.IntN(len(reasons))], Since: ago(r), GoneSince: maybe(r), Marks: randomMarks(r, l)}
		}
		if r.IntN(2) == 0 {
			w.Confirmed[l] = ago(r)
		}
		for j := range 2 {
			randomPod(r, &w, l, UID(fmt.Sprintf("%s-%d", l, j)))
		}
	}
	return prev, w, p
}

var reasons = []Reason{ReasonParentUp, ReasonParentAbsent, ReasonParentUnmanaged, ReasonRemovalStopping, ReasonRemovalConfirmed, ReasonParentNotRun}

func randomMarks(r *rand.Rand, l Lineage) Marks {
	m := Marks{LoadBearing: r.IntN(8) == 0, Removing: r.IntN(3) == 0}
	if r.IntN(4) == 0 {
		m.Stuck = UID(fmt.Sprintf("%s-%d", l, r.IntN(2)))
	}
	if r.IntN(4) == 0 {
		m.Failed = strconv.Itoa(r.IntN(2))
	}
	return m
}

func ago(r *rand.Rand) time.Time {
	return epoch.Add(time.Hour - time.Duration(r.IntN(200))*time.Second)
}

func maybe(r *rand.Rand) time.Time {
	if r.IntN(2) == 0 {
		return time.Time{}
	}
	return ago(r)
}

func randomPod(r *rand.Rand, w *World, l Lineage, uid UID) {
	name, handover := string(uid), Handover(r.IntN(3))
	if r.IntN(3) > 0 {
		w.Parents = append(w.Parents, Parent{
			UID: uid, Namespace: "ns", Name: name, Lineage: l, Created: ago(r), Deleting: r.IntN(4) == 0, Phase: PodPhase(r.IntN(3)),
			Ready: r.IntN(2) == 0, Containers: []string{"main"}, Handover: handover, Rendering: Rendering(r.IntN(3)), Manifest: strconv.Itoa(r.IntN(2)), Digest: strconv.Itoa(r.IntN(2)),
		})
	}
	if r.IntN(3) > 0 {
		w.Disk.Checkpoints = append(w.Disk.Checkpoints, Checkpoint{
			Namespace: "ns", Name: name, Lineage: l, ParentUID: uid, Containers: []string{"main"}, Handover: handover,
			HostPorts: handover == HandoverCreated, DeclaresPorts: handover == HandoverCreated && r.IntN(2) == 0, Manifest: strconv.Itoa(r.IntN(2)), Digest: strconv.Itoa(r.IntN(2)), Outdated: r.IntN(4) == 0, Stored: File(r.IntN(3)), Active: File(r.IntN(3)),
		})
	}
	if r.IntN(2) == 0 {
		w.Managed[uid] = Managed{Ready: r.IntN(2) == 0}
	}
	for _, static := range []bool{false, true} {
		if r.IntN(2) == 0 {
			b := Sandbox{ID: fmt.Sprint(uid, static), UID: uid, Namespace: "ns", Name: name, FromFile: static, Ready: r.IntN(3) > 0, Created: ago(r)}
			if static {
				b.UID, b.CheckpointOf = "static-"+uid, name
			}
			if r.IntN(4) > 0 {
				b.Containers = []Container{{Name: "main", State: ContainerState(r.IntN(4))}}
			}
			w.Sandboxes = append(w.Sandboxes, b)
		}
	}
}

// TestInvariantsHoldInEveryWorld plans for many random worlds and states. What must always hold is asserted for each.
func TestInvariantsHoldInEveryWorld(t *testing.T) {
	for seed := range uint64(30_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		prev, w, p := random(r)
		next, actions, wake := Plan(prev, w, p)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d: %s\nworld %+v\nprev %+v\nactions %v", seed, fmt.Sprintf(format, args...), w, prev, actions)
		}
		for i, a := range actions {
			c := checkpointOf(w, a)
			switch {
			case i > 0 && actions[i-1].Kind > a.Kind, i > 0 && actions[i-1].Kind == a.Kind && actions[i-1].Lineage == p.Self && a.Lineage != p.Self:
				fail("%v is out of order", a)
			case a.Kind == Withdraw && w.Runtime == RuntimeUnknown && a.Reason != ReasonRemovalStopping && a.Reason != ReasonSucceeded && a.Lineage != p.Self:
				fail("%v though the runtime is unknown", a)
			case a.Kind == Remove && a.Reason == ReasonRemovalConfirmed && (w.API != APIServing || !w.APICurrent):
				fail("%v though the API server is %v", a, w.API)
			case a.Kind == Remove && (c == nil || c.Active != Missing) && a.Lineage != p.Self:
				fail("%v of a checkpoint that is active", a)
			case a.Kind == Remove && w.Runtime == RuntimeUnknown && a.Lineage != p.Self:
				fail("%v though it may still run", a)
			case a.Kind == Activate && (c == nil || c.Stored != Intact && !restored(actions, a)):
				fail("%v of a checkpoint that is not stored", a)
			case a.Kind == StopSandbox && w.Kubelet != KubeletUnsynced && a.Reason != ReasonParentAppeared:
				fail("%v of a sandbox that the kubelet may manage", a)
			}
		}
		if !wake.IsZero() && !wake.After(w.Now) {
			fail("asks to be woken at %v, which is past", wake)
		}
		shuffled := w
		for _, list := range []any{&shuffled.Parents, &shuffled.Sandboxes} {
			shuffle(r, reflect.ValueOf(list).Elem())
		}
		if other, actions2, _ := Plan(prev, shuffled, p); !reflect.DeepEqual(actions, actions2) || !reflect.DeepEqual(next, other) {
			fail("another order of the same facts gives %v", actions2)
		}
		silent := w
		silent.API, silent.APICurrent = APIUnknown, false
		if _, actions2, _ := Plan(prev, silent, p); removals(actions2) > removals(actions) {
			fail("an API server that is unknown removes more: %v", actions2)
		}
	}
}

func checkpointOf(w World, a Action) *Checkpoint {
	for i := range w.Disk.Checkpoints {
		if c := &w.Disk.Checkpoints[i]; c.Namespace == a.Namespace && c.Name == a.Name {
			return c
		}
	}
	return nil
}

func restored(actions []Action, a Action) bool {
	return slices.ContainsFunc(actions, func(b Action) bool { return b.Kind == Restore && b.Name == a.Name })
}

func removals(actions []Action) (n int) {
	for _, a := range actions {
		if a.Kind == Remove && a.Reason != ReasonSucceeded {
			n++
		}
	}
	return n
}

// shuffle puts a slice into another order, in memory of its own.
func shuffle(r *rand.Rand, list reflect.Value) {
	fresh := reflect.MakeSlice(list.Type(), list.Len(), list.Len())
	for i, j := range r.Perm(list.Len()) {
		fresh.Index(i).Set(list.Index(j))
	}
	list.Set(fresh)
}

// TestCoreIsPure holds the package to the standard library without anything that could reach the outside.
func TestCoreIsPure(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") || slices.Contains([]string{"os", "net", "log", "io", "syscall"}, first) {
				t.Errorf("%s imports %s", entry.Name(), path)
			}
		}
	}
}
