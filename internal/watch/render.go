package watch

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// render is what a parent would look like as a checkpoint.
type render struct {
	version    string               // of the pod that it was made of
	stale      bool                 // something that it was made of has changed
	references *manifest.References // nil: not read yet
	referenced string               // the version of the pod for which they were read
	result     manifest.Result
	manifest   string // digest of it
	digest     string // of it and the assets
	state      checkpoint.Rendering
	refusal    []string // why the pod can't be checkpointed, while state is Refused
	complaint  string   // the last that was logged of it: each is said once
}

// renderParents brings World.Parents, and the volumes that are watched, up to date with the pods.
func (l *Loop) renderParents(ctx context.Context) {
	l.learn(ctx)
	l.learnImage()
	maps.DeleteFunc(l.renders, func(uid checkpoint.UID, _ *render) bool { return l.pods[uid] == nil })
	l.world.Parents = l.world.Parents[:0]
	for _, uid := range slices.Sorted(maps.Keys(l.pods)) {
		pod := l.pods[uid]
		r := l.renders[uid]
		if r == nil {
			r = new(render)
			l.renders[uid] = r
		}
		if phaseOf(pod) == checkpoint.PodLive && pod.DeletionTimestamp == nil { // else its volumes are on their way out
			l.readReferences(ctx, pod, r)
			l.renderParent(pod, r)
		}
		l.world.Parents = append(l.world.Parents, parentOf(pod, r))
	}
	l.watchVolumes()
}

// renderParent renders a pod that has changed, or something that it was made of. While its volumes can't be read though
// it runs, that is tried again and again, because nothing tells when they can.
func (l *Loop) renderParent(pod *corev1.Pod, r *render) {
	name := "volumes of " + string(pod.UID)
	if r.version == pod.ResourceVersion && (!r.stale || l.retries.blocked(name)) {
		return
	}
	if l.learned.IsZero() || r.references == nil {
		return // a manifest without them would be another one
	}
	r.version, r.stale = pod.ResourceVersion, false
	result, snapshot, err := l.convert(pod, r)
	if err == nil {
		l.retries.forget(name)
		r.rendered(result, snapshot)
		l.logWarnings(pod, r)
		return
	}
	r.state, r.result = checkpoint.RenderingUnknown, result
	if refusal := (*manifest.Refusal)(nil); errors.As(err, &refusal) {
		r.state, r.refusal = checkpoint.Refused, linesOf(refusal.Findings)
	} else if pod.Status.Phase == corev1.PodRunning {
		r.stale = true
		l.retries.failed(name)
	}
	l.logRefusal(pod, r, err)
}

func (r *render) rendered(result manifest.Result, snapshot *manifest.Snapshot) {
	r.state, r.result = checkpoint.Rendered, result
	r.manifest, r.digest = manifest.ManifestDigest(result.Manifest), manifest.Digest(result.Manifest, snapshot)
}

// convert makes the manifest and reads the assets of a parent as they are now.
func (l *Loop) convert(pod *corev1.Pod, r *render) (manifest.Result, *manifest.Snapshot, error) {
	result, err := manifest.Convert(pod, *r.references, l.Options)
	if err != nil {
		return result, nil, err
	}
	snapshot, err := l.Store.Snapshot(l.KubeletDir, checkpoint.UID(pod.UID), result.Assets)
	return result, snapshot, err
}

// readReferences asks, once for each version of the pod, for what it refers to. The pod is rendered again when the answer
// is there.
func (l *Loop) readReferences(ctx context.Context, pod *corev1.Pod, r *render) {
	version := pod.ResourceVersion
	if r.referenced == version || l.world.API != checkpoint.APIServing {
		return
	}
	l.ask(ctx, "references of "+string(pod.UID), func() (func() error, error) {
		references, err := l.Cluster.References(ctx, pod)
		return func() error {
			r.references, r.referenced, r.stale = &references, version, true
			return nil
		}, err
	})
}

// learn asks, once in each time that the API server serves, for what goes into every manifest.
func (l *Loop) learn(ctx context.Context) {
	since := l.world.APISince
	if l.world.API != checkpoint.APIServing || l.learned.Equal(since) || len(l.pods) == 0 {
		return
	}
	l.ask(ctx, "surroundings", func() (func() error, error) {
		found, err := l.Cluster.Surroundings(ctx)
		return func() error {
			l.learned = since
			options := l.Options
			options.ServiceHost, options.ServicePort, options.KubeletVersion = found.ServiceHost, found.ServicePort, found.KubeletVersion
			l.setOptions(options)
			return nil
		}, err
	})
}

// setOptions renders every parent anew if the options changed.
func (l *Loop) setOptions(options manifest.Options) {
	if l.Options == options {
		return
	}
	l.Options = options
	for _, r := range l.renders {
		r.stale = true
	}
}

// learnImage finds the image of this agent, whose binary serves as the init container of checkpoints: that of its own
// pod, or, because the static copy outlives that, of a successor that has proven that it can be pulled and runs.
func (l *Loop) learnImage() {
	var agent *corev1.Pod
	for _, pod := range l.pods {
		if l.isSelf(pod) {
			agent = pod
			break
		}
		if isReady(pod) && manifest.LineageOf(pod) == l.Policy.Self && (agent == nil || agent.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			agent = pod
		}
	}
	if agent != nil {
		options := l.Options
		options.AgentImage = agent.Spec.Containers[0].Image
		l.setOptions(options)
	}
}

// watchVolumes names to the volume source what the parents' checkpoints have been copied from.
func (l *Loop) watchVolumes() {
	wanted := make(map[checkpoint.UID][]string)
	for uid, r := range l.renders {
		for _, asset := range r.result.Assets {
			if r.state == checkpoint.Rendered && asset.Plugin != "" {
				wanted[uid] = append(wanted[uid], filepath.Join(l.KubeletDir, "pods", string(uid), "volumes", asset.Plugin, asset.Volume))
			}
		}
	}
	if !maps.EqualFunc(wanted, l.watched, slices.Equal) {
		l.watched = wanted
		l.Volumes.Watch(maps.Clone(wanted))
	}
}

func parentOf(pod *corev1.Pod, r *render) checkpoint.Parent {
	return checkpoint.Parent{
		UID:        checkpoint.UID(pod.UID),
		Namespace:  pod.Namespace,
		Name:       pod.Name,
		Lineage:    manifest.LineageOf(pod),
		Created:    pod.CreationTimestamp.Time,
		Deleting:   pod.DeletionTimestamp != nil,
		Phase:      phaseOf(pod),
		Ready:      isReady(pod),
		Containers: manifest.Running(pod),
		Handover:   manifest.HandoverOf(pod),
		Ports:      manifest.HostPorts(pod),
		Rendering:  r.state,
		Manifest:   r.manifest,
		Digest:     r.digest,
	}
}

func phaseOf(pod *corev1.Pod) checkpoint.PodPhase {
	switch {
	case pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded:
		return checkpoint.PodLive
	case pod.Status.Reason == "Evicted": // k8s.io/kubernetes/pkg/kubelet/eviction.Reason
		return checkpoint.PodEvicted
	default:
		return checkpoint.PodEnded
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
