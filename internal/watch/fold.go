package watch

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

func (l *Loop) foldAPI(facts apiclient.Facts) {
	if l.world.API != facts.State {
		l.world.API, l.world.APISince = facts.State, time.Now()
		l.Kubelet.APIServing(facts.State == checkpoint.APIServing)
	}
	l.world.APICurrent = facts.Current
	if facts.Pods == nil {
		return // not listed yet: what is known stays
	}
	l.pods = make(map[checkpoint.UID]*corev1.Pod, len(facts.Pods))
	for _, pod := range facts.Pods {
		if slices.Contains(l.Namespaces, pod.Namespace) && manifest.IsParent(pod) {
			l.pods[checkpoint.UID(pod.UID)] = pod
		}
	}
}

func (l *Loop) foldKubelet(facts kubelet.PodsFacts) {
	if l.world.Kubelet != facts.State {
		l.world.Kubelet, l.world.KubeletSince = facts.State, time.Now()
	}
	l.world.Managed = facts.Managed
}

func (l *Loop) foldRuntime(facts kubelet.RuntimeFacts) {
	before := apiSandboxes(l.world.Sandboxes)
	l.world.Runtime, l.world.Sandboxes = facts.State, facts.Sandboxes
	if l.world.Kubelet != checkpoint.KubeletUnsynced {
		return
	}
	for id := range apiSandboxes(facts.Sandboxes) {
		if !before[id] {
			l.Kubelet.Kick() // the kubelet started an API pod: it has seen the API server
			return
		}
	}
}

func apiSandboxes(sandboxes []checkpoint.Sandbox) map[string]bool {
	ids := make(map[string]bool)
	for _, s := range sandboxes {
		if !s.FromFile && s.Ready {
			ids[s.ID] = true
		}
	}
	return ids
}

func (l *Loop) foldVolumes(uids map[checkpoint.UID]bool) {
	for uid := range uids {
		if r := l.renders[uid]; r != nil {
			r.stale = true
		}
	}
}

func (l *Loop) foldDisk() {
	disk, err := l.Store.List()
	if err != nil {
		l.Log.Error().Err(err).Msg("the checkpoints on disk can't be listed: nothing is changed until they can")
		disk = checkpoint.Disk{}
	}
	l.world.Disk = disk
}

// self is the checkpointer's own lineage: that of its pod, as the API server or its own checkpoint tells.
func (l *Loop) self() checkpoint.Lineage {
	for _, p := range l.world.Parents {
		if p.Namespace == l.SelfNamespace && p.Name == l.SelfName {
			return p.Lineage
		}
	}
	for _, c := range l.world.Disk.Checkpoints {
		if c.Namespace == l.SelfNamespace && c.Name == l.SelfName {
			return c.Lineage
		}
	}
	return l.Policy.Self
}
