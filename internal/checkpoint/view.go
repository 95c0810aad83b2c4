package checkpoint

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// view is what a World says about one lineage.
type view struct {
	*World
	*part
	policy  Policy
	lineage Lineage

	parent  *Parent     // the one that counts: live before stuck before ended, newest first, none that is being deleted
	own     *Checkpoint // the parent's
	current *Checkpoint // the one to run: the parent's own or else the newest, but for one that was seen to fail
	active  *Checkpoint // the one whose manifest lies in the static pod directory
}

func look(w *World, p Policy, l Lineage, of *part, marks Marks) *view {
	v := &view{World: w, policy: p, lineage: l, part: of}
	slices.SortFunc(v.parents, func(a, b Parent) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.UID, a.UID)) // any order will do, as long as it is one
	})
	for i := range v.parents {
		p := &v.parents[i]
		if !p.Deleting && (v.parent == nil || promise(p, marks) > promise(v.parent, marks)) {
			v.parent = p
		}
	}
	v.lookAtGenerations(marks)
	return v
}

// promise ranks pods of one lineage, of which a Deployment may have several here while it rolls out.
func promise(p *Parent, marks Marks) int {
	switch {
	case p.Phase != PodLive:
		return 0
	case p.UID == marks.Stuck:
		return 1
	default:
		return 2
	}
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
	for i := range v.sandboxes {
		if s := &v.sandboxes[i]; s.UID == uid && s.Ready && !s.FromFile {
			return s
		}
	}
	return nil
}

// up says whether the pod has a READY sandbox in which everything that must run runs.
func (v *view) up(uid UID) bool {
	s := v.sandbox(uid)
	return s != nil && s.runs(v.required(uid))
}

func (s *Sandbox) runs(required []string) bool {
	return !slices.ContainsFunc(required, func(name string) bool {
		return !s.has(name, func(state ContainerState) bool { return state == ContainerRunning })
	})
}

// created says whether the first container that must run has been created in the pod's present sandbox. Managed, image
// present and sandbox READY are all earlier, and each of them can be a minute too early for a port that it needs.
func (v *view) created(uid UID) bool {
	s := v.sandbox(uid)
	return s != nil && s.begun(v.required(uid))
}

// begun says whether such a container was ever created.
func (v *view) begun(uid UID) bool {
	return slices.ContainsFunc(v.sandboxes, func(s Sandbox) bool {
		return s.UID == uid && !s.FromFile && s.begun(v.required(uid))
	})
}

func (s *Sandbox) begun(required []string) bool {
	return slices.ContainsFunc(required, func(name string) bool {
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

// taken says whether the kubelet has the parent in hand. One that can't tell shows it by the parent's sandbox; where the
// parent needs a port that the checkpoint holds, by one that is newer than the checkpoint's own.
func (v *view) taken(p *Parent) bool {
	if v.kubeletWord() != KubeletCantSay {
		return v.managed(p.UID)
	}
	s, since := v.sandbox(p.UID), v.startOf(v.active)
	switch {
	case v.API != APIServing || s == nil:
		return false
	case p.Handover == HandoverExclusive:
		return true
	case p.Handover < HandoverCreated || since.IsZero():
		return v.up(p.UID)
	default:
		return s.Created.After(since)
	}
}

// startOf is when the checkpoint's running sandbox was created; zero if there is none.
func (v *view) startOf(c *Checkpoint) (start time.Time) {
	for _, s := range v.sandboxes {
		if c != nil && s.Of(c) && s.Ready && s.Created.After(start) {
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

// apiPatience is until when an API server that was never heard is waited for.
func (v *view) apiPatience() time.Time { return v.Start.Add(v.policy.APITimeout) }

// kubeletPatience is until when a kubelet that is not heard is waited for.
func (v *view) kubeletPatience() time.Time { return v.KubeletSince.Add(v.policy.KubeletTimeout) }

// Of says whether the sandbox is of the checkpoint: of either generation, where it has two.
func (s *Sandbox) Of(c *Checkpoint) bool {
	return s.CheckpointOf == c.Name && s.Namespace == c.Namespace
}

// exists says whether the kubelet has made anything of the checkpoint's manifest. What ended before our start may have ended
// in a power cut.
func (v *view) exists(c *Checkpoint) bool {
	return slices.ContainsFunc(v.sandboxes, func(s Sandbox) bool { return s.Of(c) && (s.Ready || s.Created.After(v.Start)) })
}

// checkpointUp says whether the checkpoint has a READY sandbox in which everything that must run runs.
func (v *view) checkpointUp(c *Checkpoint) bool {
	return slices.ContainsFunc(v.sandboxes, func(s Sandbox) bool { return s.Of(c) && s.Ready && s.runs(c.Containers) })
}

// stopped says whether the runtime shows that nothing of the checkpoint is left running.
func (v *view) stopped(c *Checkpoint) bool {
	return v.Runtime == RuntimeKnown && !slices.ContainsFunc(v.sandboxes, func(s Sandbox) bool {
		return s.Of(c) && (s.Ready || slices.ContainsFunc(s.Containers, func(c Container) bool {
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
	for _, s := range v.sandboxes {
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
