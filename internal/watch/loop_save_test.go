package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

func isTransition(l line) bool { return l.Message == "transition" }
func isDone(l line) bool       { return l.Message == "action done" }

func TestFirstCheckpointIsSavedAtOnceAndLogged(t *testing.T) {
	onNode(t, func(n *node) {
		web, logged, start := daemonPod("web"), n.since(), time.Now()
		n.healthy(web)
		n.wantFile(n.stored(web))
		n.wantNoFile(n.active(web))
		if passed := time.Since(start); passed != 0 {
			t.Errorf("it took %v", passed)
		}
		done := logged(isDone)
		if len(done) != 1 || done[0].Action != "save" || done[0].Pod != "kube-system/web-x7k2p" || done[0].Reason != "first-checkpoint" {
			t.Errorf("logged %+v", done)
		}
		if moved := logged(isTransition); len(moved) != 1 || moved[0].From != "absent" || moved[0].To != "stored" {
			t.Errorf("logged %+v", moved)
		}
		if loud := logged(line.isLoud); len(loud) != 2 {
			t.Errorf("logged more: %+v", loud)
		}
	})
}

func TestNothingIsSavedBeforeThePodRuns(t *testing.T) {
	onNode(t, func(n *node) {
		web := withVolume(daemonPod("web"))
		pending := changed(web, "1", func(pod *corev1.Pod) { pod.Status = corev1.PodStatus{Phase: corev1.PodPending} })
		logged := n.since()
		n.running()
		n.synced()
		n.api(checkpoint.APIServing, pending)
		n.pass(time.Minute)
		if loud := logged(line.isLoud); len(loud) != 0 {
			t.Errorf("a pod that starts is no news: %+v", loud)
		}
		n.mount(web, "one")
		n.running(web)
		n.api(checkpoint.APIServing, changed(web, "2", func(*corev1.Pod) {}))
		n.wantFile(n.stored(web))
		for _, l := range logged(line.isLoud) {
			if !isDone(l) && !isTransition(l) {
				t.Errorf("logged %+v", l)
			}
		}
	})
}

func TestVolumeThatCantBeReadIsReadLater(t *testing.T) {
	onNode(t, func(n *node) {
		web, logged := withVolume(daemonPod("web")), n.since()
		n.healthy(web)
		n.wantNoFile(n.stored(web))
		if plans := n.pass(10 * time.Minute); plans < 20 || plans > 200 {
			t.Errorf("planned at %d instants", plans)
		}
		if loud := logged(line.isLoud); len(loud) != 1 || !strings.Contains(loud[0].Error, "config") {
			t.Errorf("logged %+v", loud)
		}
		n.mount(web, "one")
		n.pass(30 * time.Second)
		n.wantFile(n.stored(web))
		if loud := logged(line.isLoud); len(loud) != 3 { // and the save, and the transition
			t.Errorf("logged %+v", loud)
		}
	})
}

func TestChangedVolumeIsSaved(t *testing.T) {
	onNode(t, func(n *node) {
		web := withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.healthy(web)
		if dirs := n.volumes.watched["uid-web"]; len(dirs) != 1 || dirs[0] != n.volumeOf(web) {
			t.Fatalf("watched: %v", dirs)
		}
		n.pass(time.Minute)
		n.mount(web, "two")
		n.loop.VolumeChanges.Put(map[checkpoint.UID]bool{"uid-web": true})
		synctest.Wait()
		copied := filepath.Join(n.dirs.Assets, "kube-system_web-x7k2p", "config", "..data", "file")
		if got, err := os.ReadFile(copied); err != nil || string(got) != "two" {
			t.Fatalf("%q, %v\n%s", got, err, n.log)
		}
	})
}

// Regression: the volume changed between rendering and saving, and the save was then planned again and again.
func TestSavedIsWhatIsThereNow(t *testing.T) {
	onNode(t, func(n *node) {
		web := withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.synced(web)
		n.running()
		n.api(checkpoint.APIServing, web)
		n.mount(web, "two") // nobody told
		logged := n.since()
		n.running(web)
		for range 10 {
			n.diskChanged()
			n.pass(time.Minute)
		}
		if done := logged(isDone); len(done) != 1 {
			t.Errorf("%d actions: %+v", len(done), done)
		}
	})
}

func TestPodThatIsRefusedIsLoggedOnceForEachReason(t *testing.T) {
	onNode(t, func(n *node) {
		runtimeClass := "kata"
		web := daemonPod("web")
		web.Spec.RuntimeClassName = &runtimeClass
		isRefusal := func(l line) bool { return strings.Contains(l.Error, "untimeClass") }
		logged := n.since()
		n.healthy(web)
		for _, version := range []string{"2", "3", "4"} {
			n.api(checkpoint.APIServing, changed(web, version, func(*corev1.Pod) {}))
			n.pass(time.Minute)
		}
		n.wantNoFile(n.stored(web))
		if refused := logged(isRefusal); len(refused) != 1 || refused[0].Level != "warn" {
			t.Fatalf("logged %+v", refused)
		}
		n.api(checkpoint.APIServing, changed(web, "5", func(pod *corev1.Pod) {
			pod.Spec.NodeSelector, pod.Spec.ResourceClaims = nil, []corev1.PodResourceClaim{{Name: "gpu"}}
		}))
		if refused := logged(isRefusal); len(refused) != 2 {
			t.Errorf("a second reason: %+v", refused)
		}
	})
}

func TestPodsThatAreNotOursAreLeftAlone(t *testing.T) {
	onNode(t, func(n *node) {
		elsewhere := daemonPod("elsewhere")
		elsewhere.Namespace = "default"
		plain := daemonPod("plain")
		plain.Annotations = nil
		n.healthy(elsewhere, plain)
		n.pass(time.Minute)
		for _, pod := range []*corev1.Pod{elsewhere, plain} {
			n.wantNoFile(n.stored(pod))
		}
		if n.cluster.asked("surroundings") != 0 {
			t.Error("the API server was asked for something on a node without parents")
		}
	})
}

func TestOwnManifestIsAlwaysActive(t *testing.T) {
	onNode(t, func(n *node) {
		self := func(c *Config) { c.SelfNamespace, c.SelfName = "kube-system", "agent-x7k2p" }
		n.boot(self)
		agent := daemonPod("agent")
		n.healthy(agent)
		n.wantFile(n.active(agent))

		// After a power cut it knows itself from the disk alone, and through a successor of another name.
		n.powerCut(self)
		n.wantFile(n.active(agent))
		if n.loop.Policy.Self != manifest.LineageOf(agent) {
			t.Errorf("self is %q", n.loop.Policy.Self)
		}
		successor := changed(agent, "9", func(pod *corev1.Pod) { pod.Name, pod.UID = "agent-b4d9q", "uid-agent-2" })
		n.healthy(successor)
		n.pass(n.loop.Policy.PromoteAfter + time.Second)
		n.wantFile(n.stored(successor))
		if n.loop.Policy.Self != manifest.LineageOf(agent) {
			t.Errorf("self is %q after the successor's checkpoint replaced the own", n.loop.Policy.Self)
		}
		if image := n.loop.Options.AgentImage; image != "example.com/agent:1" {
			t.Errorf("the image of the agent is %q", image)
		}
	})
}
