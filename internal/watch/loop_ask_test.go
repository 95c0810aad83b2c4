package watch

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// Regression: each answer led to the next question.
func TestReferencesAreAskedForOnceForEachVersion(t *testing.T) {
	onNode(t, func(n *node) {
		web := withEnv(daemonPod("web"))
		n.cluster.set(func(c *fakeCluster) { c.value = "one" })
		n.healthy(web)
		n.pass(time.Hour)
		if asked := n.cluster.asked("references"); asked != 1 {
			t.Fatalf("asked %d times", asked)
		}
		n.cluster.set(func(c *fakeCluster) { c.value = "two" })
		n.api(checkpoint.APIServing, changed(web, "2", func(*corev1.Pod) {}))
		n.pass(time.Hour)
		if asked := n.cluster.asked("references"); asked != 2 {
			t.Fatalf("asked %d times", asked)
		}
		if data, err := os.ReadFile(n.stored(web)); err != nil || !strings.Contains(string(data), `"two"`) {
			t.Errorf("%s, %v", data, err)
		}
	})
}

func TestFailingQuestionsAreAskedMoreAndMoreSlowly(t *testing.T) {
	onNode(t, func(n *node) {
		web := withEnv(daemonPod("web"))
		n.cluster.set(func(c *fakeCluster) { c.err = errFake })
		logged := n.since()
		n.healthy(web)
		plans := n.pass(time.Hour)
		for _, call := range []string{"references", "surroundings"} {
			if asked := n.cluster.asked(call); asked < 200 || asked > 500 {
				t.Errorf("%s: asked %d times in an hour", call, asked)
			}
		}
		if plans > 3000 {
			t.Errorf("%d plans in an hour", plans)
		}
		if loud := logged(line.isLoud); len(loud) != 2 {
			t.Errorf("logged %+v", loud)
		}
		n.cluster.set(func(c *fakeCluster) { c.err = nil })
		n.pass(30 * time.Second)
		n.wantFile(n.stored(web))
	})
}

func TestHangingApiServerHoldsUpNothing(t *testing.T) {
	onNode(t, func(n *node) {
		web, setting, gone := daemonPod("web"), withEnv(daemonPod("setting")), daemonPod("gone")
		n.healthy(web, gone)
		before := n.cluster.asked("references")
		n.cluster.set(func(c *fakeCluster) { c.hang = true })
		n.api(checkpoint.APIServing, web, setting) // references to ask for, and a removal to confirm
		n.pass(time.Hour)
		if n.cluster.asked("references") != before+1 {
			t.Fatal("the references were to be asked for")
		}
		must(t, os.Remove(n.stored(web)))
		n.diskChanged()
		n.wantFile(n.stored(web))
		n.apiGone()
		n.running()
		n.unsynced()
		n.wantFile(n.active(web))
		must(t, os.Remove(n.active(web)))
		n.diskChanged()
		n.wantFile(n.active(web))
	}) // and the loop ends, though it still waits for answers
}

func TestOrphanIsStoppedBeforeItsPortIsNeeded(t *testing.T) {
	onNode(t, func(n *node) {
		gateway := daemonPod("gateway")
		gateway.Spec.HostNetwork = true
		n.healthy(gateway)
		n.boot(nil)
		n.running(gateway)
		n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeKnown, Sandboxes: []checkpoint.Sandbox{{
			ID: "orphan", UID: "uid-gateway", Namespace: gateway.Namespace, Name: gateway.Name, Ready: true,
			Containers: []checkpoint.Container{{Name: "main", State: checkpoint.ContainerExited}},
		}}})
		n.unsynced()
		n.apiGone()
		n.wantFile(n.active(gateway))
		if stopped := n.runtime.stopped; len(stopped) != 1 || stopped[0] != "orphan" {
			t.Errorf("stopped: %v", stopped)
		}
	})
}

// Regression: a runtime that stops a sandbox, or says so, and still lists it was told to stop it without end.
func TestSandboxThatStaysIsStoppedMoreAndMoreSlowly(t *testing.T) {
	onNode(t, func(n *node) {
		db := daemonPod("db")
		db.Annotations[manifest.AnnotationHandover] = "exclusive"
		n.healthy(db)
		n.boot(nil)
		sandbox := checkpoint.Sandbox{ID: "orphan", UID: "uid-db", Namespace: db.Namespace, Name: db.Name, Ready: true}
		n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeKnown, Sandboxes: []checkpoint.Sandbox{sandbox}})
		n.unsynced()
		n.apiGone()
		n.pass(10 * time.Minute)
		if stops := len(n.runtime.stopped); stops < 30 || stops > 100 {
			t.Errorf("stopped %d times", stops)
		}
		n.wantNoFile(n.active(db))
		n.running()
		n.wantFile(n.active(db))
	})
}

func TestSteadyStateIsSilent(t *testing.T) {
	onNode(t, func(n *node) {
		var pods []*corev1.Pod
		for i := range 30 {
			pods = append(pods, withEnv(daemonPod(fmt.Sprintf("web%d", i))))
		}
		n.healthy(pods...)
		n.pass(time.Minute)
		logged, asked := n.since(), n.cluster.asked("references")+n.cluster.asked("pods")+n.cluster.asked("node")
		if plans := n.pass(24 * time.Hour); plans != 0 {
			t.Errorf("%d plans in a day without a change", plans)
		}
		if loud := logged(line.isLoud); len(loud) != 0 {
			t.Errorf("logged %+v", loud)
		}
		if now := n.cluster.asked("references") + n.cluster.asked("pods") + n.cluster.asked("node"); now != asked {
			t.Errorf("asked %d times", now-asked)
		}
	})
}

func TestStormOfEventsChangesNothing(t *testing.T) {
	onNode(t, func(n *node) {
		web := withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.healthy(web)
		logged := n.since()
		for i := range 2000 {
			n.loop.Directories.Put(map[string]bool{everywhere: true})
			n.loop.VolumeChanges.Put(map[checkpoint.UID]bool{"uid-web": true})
			if i%100 == 0 {
				n.healthy(changed(web, fmt.Sprint(i+2), func(*corev1.Pod) {}))
			}
		}
		synctest.Wait()
		if loud := logged(line.isLoud); len(loud) != 0 {
			t.Errorf("logged %+v", loud)
		}
		n.powerCut(nil)
		n.wantFile(n.active(web))
	})
}

func TestShutdownAtAnyMomentLeavesNothingRunning(t *testing.T) {
	onNode(t, func(n *node) {
		for i := range 20 {
			web := withEnv(daemonPod("web"))
			n.cluster.set(func(c *fakeCluster) { c.hang = i%2 == 0 })
			n.healthy(web)
			n.stop()
			n.cluster.set(func(c *fakeCluster) {
				if c.open != 0 {
					t.Errorf("%d questions outlive the loop", c.open)
				}
			})
			n.boot(nil)
		}
	})
}
