package watch

import (
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// logTransitions writes one line for each lineage whose phase changes, with what was known.
func (l *Loop) logTransitions(next map[checkpoint.Lineage]checkpoint.State) {
	all := maps.Clone(next)
	if all == nil {
		all = make(map[checkpoint.Lineage]checkpoint.State)
	}
	for lineage := range l.states {
		all[lineage] = next[lineage]
	}
	for _, lineage := range slices.Sorted(maps.Keys(all)) {
		from, to := l.states[lineage], all[lineage]
		l.tellTransition(lineage, from, to)
		pod, uid := l.podOf(lineage)
		if to.Marks.LoadBearing && !from.Marks.LoadBearing {
			l.Log.Warn().Str("lineage", string(lineage)).Str("pod", pod).Str("uid", string(uid)).
				Msg("the checkpoint is load-bearing, the API server went away when it was withdrawn for removal: it is kept until a pod of its lineage is up")
		}
		if from.Phase == to.Phase {
			continue
		}
		l.Log.Info().Str("lineage", string(lineage)).Str("pod", pod).Str("uid", string(uid)).
			Stringer("from", from.Phase).Stringer("to", to.Phase).Str("reason", string(to.Reason)).
			Stringer("api", l.world.API).Stringer("kubelet", l.world.Kubelet).Stringer("runtime", l.world.Runtime).
			Bool("up", to.Up).Msg("transition")
	}
}

// podOf is the pod that stands for the lineage: the one that its checkpoint was made of.
func (l *Loop) podOf(lineage checkpoint.Lineage) (name string, uid checkpoint.UID) {
	if all := l.checkpointsOf(lineage); len(all) > 0 {
		return all[0].Namespace + "/" + all[0].Name, all[0].ParentUID
	}
	for _, p := range l.world.Parents {
		if p.Lineage == lineage {
			return p.Namespace + "/" + p.Name, p.UID
		}
	}
	return "", ""
}

func (l *Loop) checkpointsOf(lineage checkpoint.Lineage) (all []checkpoint.Checkpoint) {
	for _, c := range l.world.Disk.Checkpoints {
		if c.Lineage == lineage {
			all = append(all, c)
		}
	}
	return all
}

// logRefusal says once why a pod has no checkpoint, or keeps an earlier one. Volumes that are not there yet are no news
// before the pod is up.
func (l *Loop) logRefusal(pod *corev1.Pod, r *render, err error) {
	level := zerolog.WarnLevel
	if r.state == checkpoint.RenderingUnknown && !l.isServing(pod) {
		level = zerolog.DebugLevel
	} else if r.complaint == err.Error() {
		return
	} else {
		r.complaint = err.Error()
	}
	if r.state == checkpoint.Refused {
		l.tellRefused(pod, err)
	}
	l.Log.WithLevel(level).Err(err).Str("pod", pod.Namespace+"/"+pod.Name).Str("uid", string(pod.UID)).
		Msg("the pod can't be checkpointed: an earlier checkpoint of it stays as it is")
}

// isServing says whether the pod is Ready by the kubelet's word, or else by the API server's, which after a power cut is
// from before it.
func (l *Loop) isServing(pod *corev1.Pod) bool {
	if l.world.Kubelet == checkpoint.KubeletAbsent {
		return isReady(pod)
	}
	return l.world.Managed[checkpoint.UID(pod.UID)].Ready
}

// logProblems says once what is wrong on disk.
func (l *Loop) logProblems() {
	found := make(map[manifest.Problem]bool)
	for _, p := range l.Store.Problems() {
		found[p] = true
		if !l.said[p] {
			l.Log.Warn().Str("path", p.Path).Str("problem", p.What).Msg("something is wrong on disk")
		}
	}
	l.said = found
}

func (l *Loop) logWarnings(pod *corev1.Pod, r *render) {
	lines := linesOf(r.result.Warnings)
	said := r.complaint
	r.complaint = strings.Join(lines, "; ")
	if len(lines) == 0 || r.complaint == said {
		return
	}
	l.Log.Warn().Strs("warnings", lines).Str("pod", pod.Namespace+"/"+pod.Name).Str("uid", string(pod.UID)).
		Msg("the checkpoint of the pod differs from the pod")
}
