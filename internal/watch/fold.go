package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
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
	l.reporter.api = facts.Detail
	l.world.APICurrent = facts.Current
	if facts.Pods == nil && !facts.Current {
		return // not listed yet: what is known stays
	}
	l.pods = make(map[checkpoint.UID]*corev1.Pod, len(facts.Pods))
	for _, pod := range facts.Pods {
		if l.isParent(pod) {
			l.pods[checkpoint.UID(pod.UID)] = pod
		}
	}
}

func (l *Loop) isParent(pod *corev1.Pod) bool {
	return slices.Contains(l.Namespaces, pod.Namespace) && manifest.IsParent(pod)
}

func (l *Loop) foldKubelet(facts kubelet.PodsFacts) {
	if l.world.Kubelet != facts.State {
		l.world.Kubelet, l.world.KubeletSince = facts.State, time.Now()
	}
	l.reporter.kubelet = facts.Detail
	l.world.Managed, l.world.Evicted = facts.Managed, facts.Evicted
}

func (l *Loop) foldRuntime(facts kubelet.RuntimeFacts) {
	before := apiSandboxes(l.world.Sandboxes)
	if l.world.Runtime != facts.State {
		l.reporter.runtimeSince = time.Now()
	}
	l.reporter.runtime = facts.Detail
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

// foldDirectories lists the disk anew. Whatever failed there may succeed now, unless only assets changed: those are what
// a save that fails leaves and takes away.
func (l *Loop) foldDirectories(dirs map[string]bool) {
	l.Store.Touched(dirs)
	l.foldDisk()
	for dir := range dirs {
		if dir != l.Options.AssetsDir && !strings.HasPrefix(dir, l.Options.AssetsDir+"/") {
			l.retries.release()
			l.askRetries.again(confirmation)
		}
	}
}

// watchAssets names to the watch of the directories where the checkpoints' assets lie.
func (l *Loop) watchAssets() {
	if dirs := l.Store.AssetDirs(); !slices.Equal(dirs, l.assets) {
		l.assets = dirs
		l.Disk.Watch(dirs)
	}
}

// list is what failed lists of the disk are held back by.
const list = "list of the disk"

func (l *Loop) foldDisk() {
	disk, err := l.Store.List()
	l.world.Disk = disk
	if err == nil {
		l.retries.forget(list)
		l.watchAssets()
		l.logProblems()
		return
	}
	wait, news := l.retries.failed(list)
	l.Log.WithLevel(levelOf(zerolog.ErrorLevel, news)).Err(err).Dur("retry_in", wait).
		Msg("the checkpoints on disk can't be listed: nothing is changed until they can")
}

// refoldDisk tries again to list the disk, though nothing tells of a change there.
func (l *Loop) refoldDisk() {
	if l.retries.failing(list) && !l.retries.blocked(list) {
		l.foldDisk()
	}
}

// isSelf says whether the pod is this very process's.
func (l *Loop) isSelf(pod *corev1.Pod) bool {
	return pod.Namespace == l.SelfNamespace && pod.Name == l.SelfName
}

// self is the checkpointer's own lineage: that of its pod, as the API server or its own checkpoint tells.
func (l *Loop) self() checkpoint.Lineage {
	for _, pod := range l.pods {
		if l.isSelf(pod) {
			return manifest.LineageOf(pod)
		}
	}
	for _, c := range l.world.Disk.Checkpoints {
		if c.Namespace == l.SelfNamespace && c.Name == l.SelfName {
			return c.Lineage
		}
	}
	return l.Policy.Self
}
