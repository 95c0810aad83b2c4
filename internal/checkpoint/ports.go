package checkpoint

import (
	"cmp"
	"slices"
	"strings"
)

// contested says whether another lineage has the better claim to a port of the node that the stored checkpoint takes: it
// is up, its checkpoint is active, or it is newer and wanted here too.
func (s *step) contested() bool {
	ports := s.current.Ports
	return len(ports) > 0 && slices.ContainsFunc(s.others, func(o *view) bool {
		switch {
		case o.lineage == s.lineage:
			return false
		case o.active != nil && overlap(ports, o.active.Ports), s.parent == nil && o.needs(ports):
			return true
		case !overlap(ports, o.ports()):
			return false
		default:
			return o.anyUp() || o.current != nil && overlap(ports, o.current.Ports) && !o.gone() && o.newer(s.view)
		}
	})
}

// outranked says whether a pod of another lineage needs a port of the active checkpoint, whose own pod is not wanted any
// more.
func (s *step) outranked() bool {
	return s.parent == nil && slices.ContainsFunc(s.others, func(o *view) bool {
		return o.lineage != s.lineage && o.needs(s.active.Ports)
	})
}

// needs says whether the kubelet has begun to run the lineage's pod, which takes one of the ports.
func (v *view) needs(ports []Port) bool {
	p := v.parent
	return p != nil && p.Phase == PodLive && overlap(ports, p.Ports) && v.managed(p.UID) && v.created(p.UID)
}

// ports are those of the lineage's pods, and of its checkpoint.
func (v *view) ports() (ports []Port) {
	for _, p := range v.parents {
		ports = append(ports, p.Ports...)
	}
	if v.current != nil {
		ports = append(ports, v.current.Ports...)
	}
	return ports
}

// newer compares two lineages by their pods, or without these by their checkpoints. Of two of one age one is newer.
func (v *view) newer(o *view) bool {
	var age int
	if v.parent != nil && o.parent != nil {
		age = v.parent.Created.Compare(o.parent.Created)
	} else {
		age = v.current.SavedAt.Compare(o.current.SavedAt)
	}
	return cmp.Or(age, cmp.Compare(v.lineage, o.lineage)) > 0
}

func overlap(a, b []Port) bool {
	return slices.ContainsFunc(a, func(p Port) bool { return slices.ContainsFunc(b, p.clashes) })
}

// clashes says whether two ports can't both be bound: the same number, and the same address or one that means all.
func (p Port) clashes(q Port) bool {
	pIP, pPort := p.split()
	qIP, qPort := q.split()
	return pPort == qPort && (pIP == "" || qIP == "" || pIP == qIP)
}

func (p Port) split() (ip, port string) {
	if i := strings.LastIndexByte(string(p), ':'); i >= 0 {
		return string(p[:i]), string(p[i+1:])
	}
	return "", string(p)
}
