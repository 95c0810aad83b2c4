package status

import (
	"cmp"
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// generationLength is how much of a manifest's digest names a generation: enough to tell two apart.
const generationLength = 12

// GenerationOf names the generation that a manifest's digest stands for.
func GenerationOf(digest string) string { return digest[:min(len(digest), generationLength)] }

// FromDisk is what the disk alone tells of each lineage: not why.
func FromDisk(disk checkpoint.Disk) (lineages []Lineage) {
	found := make(map[checkpoint.Lineage][]checkpoint.Checkpoint)
	for _, c := range disk.Checkpoints {
		found[c.Lineage] = append(found[c.Lineage], c)
	}
	for name, all := range found {
		l := Lineage{Lineage: string(name), Phase: checkpoint.Stored.String()}
		for _, c := range all {
			if c.Active != checkpoint.Missing {
				l.Phase = checkpoint.Active.String()
			}
		}
		l.Describe(all)
		l.Mark(disk.Marks[name])
		lineages = append(lineages, l)
	}
	slices.SortFunc(lineages, func(a, b Lineage) int { return cmp.Compare(a.Lineage, b.Lineage) })
	return lineages
}

// Describe notes what lies on disk of the lineage. The newest checkpoint counts.
func (l *Lineage) Describe(all []checkpoint.Checkpoint) {
	var current *checkpoint.Checkpoint
	for i := range all {
		c := &all[i]
		if current == nil || cmp.Or(cmp.Compare(rank(c), rank(current)), c.SavedAt.Compare(current.SavedAt)) > 0 {
			current = c
		}
	}
	if current == nil {
		return
	}
	for _, c := range all {
		if c.Manifest != current.Manifest {
			l.Previous = GenerationOf(c.Manifest)
		}
	}
	l.Namespace, l.Pod, l.UID = current.Namespace, current.Name, string(current.ParentUID)
	l.Generation = GenerationOf(current.Manifest)
	if saved := current.SavedAt; !saved.IsZero() {
		l.SavedAt = &saved
	}
	l.Handover = current.Handover.String()
	for _, port := range current.Ports {
		l.Ports = append(l.Ports, string(port))
	}
}

// rank orders the generation before below the one that replaced it.
func rank(c *checkpoint.Checkpoint) int {
	if c.Previous {
		return 0
	}
	return 1
}

// Mark notes what must be known of the lineage after a restart.
func (l *Lineage) Mark(m checkpoint.Marks) {
	l.Stuck, l.LoadBearing, l.HandedTo = string(m.Stuck), m.LoadBearing, string(m.HandedTo)
	l.Failed = GenerationOf(m.Failed)
}
