package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// record is a checkpoint on disk, its files, and what its pod is like.
type record struct {
	checkpoint.Checkpoint // Stored and Active as they are now
	work                  int
	health                health
	nonce                 int            // of the active file
	uid                   checkpoint.UID // of the static pod that the active file makes
	active                string         // the content of the active file, while it is not Missing
}

// disk is what the store keeps: each step of it is atomic and durable, and fails as a whole.
type disk struct {
	records []record
	marks   map[checkpoint.Lineage]checkpoint.Marks
	node    int // the UID of the Node object that the checkpoints are from; zero: not recorded
	full    bool

	wroteAt time.Duration
	before  *disk // as it was before the last write, which a disk that lies about durability may lose
}

var errFull = errors.New("no space left on device")

// staticFile is a manifest in the kubelet's static pod directory.
type staticFile struct {
	uid    checkpoint.UID
	name   string
	work   int
	health health
}

// hash is the static pod's UID: of content and path.
func (r *record) hash() checkpoint.UID {
	return checkpoint.UID(fmt.Sprintf("static %s previous=%v nonce=%d", r.active, r.Previous, r.nonce))
}

// manifests is what the kubelet finds in its static pod directory. An altered file is none of ours.
func (d *disk) manifests() (files []staticFile) {
	for i := range d.records {
		if r := &d.records[i]; r.Active == checkpoint.Intact {
			files = append(files, staticFile{r.uid, r.Name, r.work, r.health})
		}
	}
	return files
}

func (d *disk) find(name string, previous bool) *record {
	for i := range d.records {
		if r := &d.records[i]; r.Name == name && r.Previous == previous {
			return r
		}
	}
	return nil
}

// list is what the store tells the core. An unstable order shows what depends on it.
func (d *disk) list() checkpoint.Disk {
	list := checkpoint.Disk{Known: true, Marks: maps.Clone(d.marks)}
	for _, r := range d.records {
		list.Checkpoints = append(list.Checkpoints, r.Checkpoint)
	}
	return list
}

// usable is how many checkpoints of a workload could be activated, or are active.
func (d *disk) usable(work int) (n int) {
	for _, r := range d.records {
		if r.work == work && (r.Stored == checkpoint.Intact || r.Active == checkpoint.Intact) {
			n++
		}
	}
	return n
}

// clone is the disk as it is, without its past.
func (d *disk) clone() *disk {
	c := *d
	c.records, c.marks, c.before = slices.Clone(d.records), maps.Clone(d.marks), nil
	return &c
}

// write does one step of the store.
func (w *World) write(a checkpoint.Action) error {
	d := &w.disk
	if d.full && a.Kind != checkpoint.Withdraw && a.Kind != checkpoint.Remove {
		return errFull
	}
	d.before, d.wroteAt = d.clone(), w.now
	r := d.find(a.Name, a.Previous)
	switch {
	case a.Kind == checkpoint.Mark:
		d.mark(a)
		return nil
	case a.Kind == checkpoint.Save:
		return w.save(a)
	case r == nil && (a.Kind == checkpoint.Remove || a.Kind == checkpoint.Withdraw):
		return nil
	case r == nil:
		return fmt.Errorf("there is no checkpoint of %s to %v", a.Name, a.Kind)
	}
	switch a.Kind {
	case checkpoint.Restore:
		r.Stored = checkpoint.Intact
	case checkpoint.Activate:
		r.Active, r.active = checkpoint.Intact, r.Manifest
		r.uid = r.hash()
	case checkpoint.Retry:
		r.nonce++
		r.uid = r.hash()
	case checkpoint.Withdraw:
		r.Active, r.nonce = checkpoint.Missing, 0
	case checkpoint.Remove:
		d.records = slices.DeleteFunc(d.records, func(o record) bool { return o.Name == a.Name && o.Previous == a.Previous })
	case checkpoint.Prune:
		r.Outdated = false
	}
	return nil
}

func (d *disk) mark(a checkpoint.Action) {
	d.marks = maps.Clone(d.marks)
	if d.marks == nil {
		d.marks = make(map[checkpoint.Lineage]checkpoint.Marks)
	}
	d.marks[a.Lineage] = a.Marks
	if a.Marks == (checkpoint.Marks{}) {
		delete(d.marks, a.Lineage)
	}
}

// save writes the checkpoint of a pod. One of another pod of that name becomes the generation before.
func (w *World) save(a checkpoint.Action) error {
	d := &w.disk
	i := slices.IndexFunc(w.agent.known.Parents, func(p checkpoint.Parent) bool { return p.UID == a.UID })
	if i < 0 {
		return errors.New("the parent is gone meanwhile")
	}
	p := w.agent.known.Parents[i]
	r := d.find(p.Name, false)
	if r != nil && r.ParentUID != p.UID {
		d.keepPrevious(*r)
		r = d.find(p.Name, false)
	}
	if r == nil {
		d.records = append(d.records, record{})
		r = &d.records[len(d.records)-1]
	}
	work := slices.IndexFunc(w.workloads, func(o Workload) bool { return o.lineage() == p.Lineage })
	active := r.Active
	if active == checkpoint.Intact && r.active != p.Manifest {
		active = checkpoint.Altered
	}
	r.work, r.health = work, w.healths[p.Manifest]
	r.Checkpoint = checkpoint.Checkpoint{
		Namespace: p.Namespace, Name: p.Name, Lineage: p.Lineage, ParentUID: p.UID, Containers: p.Containers,
		Handover: p.Handover, HostPorts: len(p.Ports) > 0, Ports: p.Ports, SavedAt: at(w.now), Manifest: p.Manifest, Digest: p.Digest,
		Outdated: active != checkpoint.Missing, Stored: checkpoint.Intact, Active: active,
	}
	slices.SortFunc(d.records, func(a, b record) int { return cmp.Or(cmp.Compare(a.Name, b.Name), boolCompare(a.Previous, b.Previous)) })
	return nil
}

func (d *disk) keepPrevious(r record) {
	if before := d.find(r.Name, true); before != nil && before.Active != checkpoint.Missing {
		return
	}
	d.records = slices.DeleteFunc(d.records, func(o record) bool { return o.Name == r.Name && o.Previous })
	r.Previous, r.Active, r.nonce = true, checkpoint.Missing, 0
	r.Manifest += ", its assets elsewhere"
	r.Digest += ", its assets elsewhere"
	d.records = append(d.records, r)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
