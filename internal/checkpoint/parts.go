package checkpoint

import (
	"maps"
	"slices"
)

// parts is a World by lineage, so that the cost of a plan grows with what there is and not with its square.
type parts map[Lineage]*part

type part struct {
	parents     []Parent     // every pod of it on this node; newest first in a view
	checkpoints []Checkpoint // newest generation first in a view
	sandboxes   []Sandbox    // of its pods and of its checkpoints
}

func divide(w *World) parts {
	all := make(parts)
	pods := make(map[UID][]Lineage)
	for _, p := range w.Parents {
		all.of(p.Lineage).parents = append(all.of(p.Lineage).parents, p)
		pods[p.UID] = append(pods[p.UID], p.Lineage)
	}
	static := make(map[[2]string][]Lineage)
	for _, c := range w.Disk.Checkpoints {
		all.of(c.Lineage).checkpoints = append(all.of(c.Lineage).checkpoints, c)
		pods[c.ParentUID] = appendNew(pods[c.ParentUID], c.Lineage)
		name := [2]string{c.Namespace, c.Name}
		static[name] = appendNew(static[name], c.Lineage)
	}
	for _, s := range w.Sandboxes {
		owners := pods[s.UID]
		if s.CheckpointOf != "" {
			owners = static[[2]string{s.Namespace, s.CheckpointOf}]
		}
		for _, l := range owners {
			all.of(l).sandboxes = append(all.of(l).sandboxes, s)
		}
	}
	return all
}

func (all parts) of(l Lineage) *part {
	if all[l] == nil {
		all[l] = new(part)
	}
	return all[l]
}

// lineages is every lineage that anything is known of, in a fixed order.
func (all parts) lineages(prev map[Lineage]State, marks map[Lineage]Marks) []Lineage {
	for l := range prev {
		all.of(l)
	}
	for l := range marks {
		all.of(l)
	}
	return slices.Sorted(maps.Keys(all))
}

func appendNew(list []Lineage, l Lineage) []Lineage {
	if slices.Contains(list, l) {
		return list
	}
	return append(list, l)
}
