package checkpoint

import (
	"slices"
	"strings"
	"time"
)

// view is what a World says about one lineage.
type view struct {
	*World
	policy  Policy
	lineage Lineage

	parents     []Parent // every pod of it on this node, newest first
	parent      *Parent  // the one that counts: live before ended, newest first, none that is being deleted
	checkpoints []Checkpoint
	current     *Checkpoint // the parent's own; without one, what is active; without one, any
	active      *Checkpoint // the one whose manifest lies in the static pod directory
}

func look(w *World, p Policy, l Lineage) *view {
	v := &view{World: w, policy: p, lineage: l}
	for _, parent := range w.Parents {
		if parent.Lineage == l {
			v.parents = append(v.parents, parent)
		}
	}
	slices.SortFunc(v.parents, func(a, b Parent) int {
		if c := b.Created.Compare(a.Created); c != 0 {
			return c
		}
		return strings.Compare(string(b.UID), string(a.UID)) // any order will do, as long as it is one
	})
	for i := range v.parents {
		candidate := &v.parents[i]
		if !candidate.Deleting && (v.parent == nil || v.parent.Phase != PodLive && candidate.Phase == PodLive) {
			v.parent = candidate
		}
	}
	for _, c := range w.Disk.Checkpoints {
		if c.Lineage == l {
			v.checkpoints = append(v.checkpoints, c)
		}
	}
	for i := range v.checkpoints {
		c := &v.checkpoints[i]
		if c.Active != Missing {
			v.active = c
		}
		if v.parent != nil && c.ParentUID == v.parent.UID {
			v.current = c
		}
	}
	if v.current == nil {
		v.current = v.active
	}
	if v.current == nil && len(v.checkpoints) > 0 {
		v.current = &v.checkpoints[len(v.checkpoints)-1]
	}
	return v
}

func (v *view) self() bool { return v.lineage == v.policy.Self }

// gone says whether the API server, serving now, has no pod of the lineage on this node, not even one that is ending.
func (v *view) gone() bool {
	return v.API == APIServing && v.APICurrent && len(v.parents) == 0
}

// uids are the pods of the lineage that may run: those of the API server, and the one that the checkpoint was made of.
func (v *view) uids() []UID {
	var uids []UID
	for _, p := range v.parents {
		uids = append(uids, p.UID)
	}
	for _, c := range v.checkpoints {
		if !slices.Contains(uids, c.ParentUID) {
			uids = append(uids, c.ParentUID)
		}
	}
	return uids
}

// required names the containers that must run for the pod to be up.
func (v *view) required(uid UID) []string {
	for _, p := range v.parents {
		if p.UID == uid {
			return p.Containers
		}
	}
	for _, c := range v.checkpoints {
		if c.ParentUID == uid {
			return c.Containers
		}
	}
	return nil
}

// sandbox is the READY sandbox of an API pod.
func (v *view) sandbox(uid UID) *Sandbox {
	for i := range v.Sandboxes {
		if s := &v.Sandboxes[i]; s.UID == uid && s.Ready && !s.FromFile {
			return s
		}
	}
	return nil
}

// up says whether the pod has a READY sandbox in which everything that must run runs.
func (v *view) up(uid UID) bool {
	s := v.sandbox(uid)
	return s != nil && !slices.ContainsFunc(v.required(uid), func(name string) bool {
		return !s.has(name, func(state ContainerState) bool { return state == ContainerRunning })
	})
}

// created says whether the first container that must run has been created in the pod's present sandbox. Managed, image
// present and sandbox READY are all earlier, and each of them can be a minute too early.
func (v *view) created(uid UID) bool {
	s := v.sandbox(uid)
	return s != nil && slices.ContainsFunc(v.required(uid), func(name string) bool {
		return s.has(name, func(state ContainerState) bool { return state != ContainerUnknown })
	})
}

func (s *Sandbox) has(name string, in func(ContainerState) bool) bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.Name == name && in(c.State) })
}

// anyUp says whether any pod of the lineage is up.
func (v *view) anyUp() bool { return slices.ContainsFunc(v.uids(), v.up) }

// anySandbox says whether any pod of the lineage has a READY sandbox.
func (v *view) anySandbox() bool {
	return slices.ContainsFunc(v.uids(), func(uid UID) bool { return v.sandbox(uid) != nil })
}

// managed says whether the kubelet manages the pod.
func (v *view) managed(uid UID) bool {
	_, ok := v.Managed[uid]
	return v.Kubelet == KubeletSynced && ok
}

func (v *view) anyManaged() bool { return slices.ContainsFunc(v.uids(), v.managed) }

// taken says whether the kubelet has the parent in hand. A kubelet that can't tell shows it by a sandbox of the parent
// that is newer than the checkpoint's own.
func (v *view) taken(p *Parent) bool {
	if v.kubelet() != KubeletAbsent {
		return v.managed(p.UID)
	}
	s, since := v.sandbox(p.UID), v.startOf(v.active)
	return v.API == APIServing && s != nil && s.Created.After(since)
}

// startOf is when the checkpoint's running sandbox was created; zero if there is none.
func (v *view) startOf(c *Checkpoint) (start time.Time) {
	for _, s := range v.Sandboxes {
		if c != nil && s.of(c) && s.Ready && s.Created.After(start) {
			start = s.Created
		}
	}
	return start
}

func (v *view) ready(p *Parent) bool {
	if v.Kubelet == KubeletSynced {
		return v.Managed[p.UID].Ready && v.up(p.UID)
	}
	return v.API == APIServing && p.Ready && v.up(p.UID)
}

// kubelet is World.Kubelet after the patience for an Unknown one.
func (v *view) kubelet() Kubelet {
	if v.Kubelet == KubeletUnknown && !v.Now.Before(v.KubeletSince.Add(v.policy.KubeletTimeout)) {
		return KubeletAbsent
	}
	return v.Kubelet
}

func (s *Sandbox) of(c *Checkpoint) bool {
	return s.CheckpointOf == c.Name && s.Namespace == c.Namespace
}

// stopped says whether the runtime shows that nothing of the checkpoint is left running.
func (v *view) stopped(c *Checkpoint) bool {
	return v.Runtime == RuntimeKnown && !slices.ContainsFunc(v.Sandboxes, func(s Sandbox) bool {
		return s.of(c) && (s.Ready || slices.ContainsFunc(s.Containers, func(c Container) bool {
			return c.State == ContainerRunning
		}))
	})
}

// orphans are READY sandboxes of the lineage's API pods while the kubelet, not having seen the API server since its
// start, manages none of them: nobody restarts what fails in them.
func (v *view) orphans() (ids []string) {
	if v.Kubelet != KubeletUnsynced {
		return nil
	}
	for _, uid := range v.uids() {
		if s := v.sandbox(uid); s != nil {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// print is the state of the lineage's containers in one comparable word.
func (v *view) print() string {
	var words []string
	uids := v.uids()
	for _, s := range v.Sandboxes {
		if !slices.Contains(uids, s.UID) || s.FromFile {
			continue
		}
		for _, c := range s.Containers {
			words = append(words, s.ID+"/"+c.Name+"="+string('0'+rune(c.State)))
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
