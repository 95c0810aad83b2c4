package watch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
)

func isFailure(l line) bool { return l.Message == "action failed" }

func TestPowerCutActivatesBeforeAnyTimePasses(t *testing.T) {
	onNode(t, func(n *node) {
		pods := []*corev1.Pod{daemonPod("web"), daemonPod("gateway"), daemonPod("dns")}
		n.healthy(pods...)
		logged, start := n.since(), time.Now()
		n.powerCut(nil)
		for _, pod := range pods {
			n.wantFile(n.active(pod))
		}
		if passed := time.Since(start); passed != 0 {
			t.Errorf("it took %v", passed)
		}
		done := logged(isDone)
		for _, l := range done {
			if l.Action != "activate" || l.Reason != "kubelet-restarted" {
				t.Errorf("logged %+v", l)
			}
		}
		if len(done) != len(pods) {
			t.Errorf("%d actions", len(done))
		}
	})
}

func TestApiServerThatSaysNothingIsWaitedForToTheNanosecond(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.boot(nil)
		n.running()
		n.unsynced()
		n.pass(n.loop.Config.Policy.APITimeout - time.Nanosecond)
		n.wantNoFile(n.active(web))
		n.pass(time.Nanosecond)
		n.wantFile(n.active(web))
	})
}

func TestSpoiledManifestIsRestoredAtOnce(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"deleted":     os.Remove,
		"truncated":   func(path string) error { return os.Truncate(path, 0) },
		"overwritten": func(path string) error { return os.WriteFile(path, []byte("somebody else's"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(n *node) {
				web := daemonPod("web")
				n.healthy(web)
				n.powerCut(nil)
				n.runningCheckpoint(web)
				for _, path := range []string{n.active(web), n.stored(web)} {
					before, err := os.ReadFile(path)
					must(t, err)
					n.pass(time.Minute)
					must(t, spoil(path))
					n.diskChanged()
					after, err := os.ReadFile(path)
					if err != nil || string(after) != string(before) {
						t.Errorf("%s: %q, %v", path, after, err)
					}
				}
			})
		})
	}
}

func TestManifestThatKeepsVanishingIsRestoredMoreAndMoreSlowly(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.powerCut(nil)
		n.runningCheckpoint(web)
		n.pass(time.Minute)
		logged := n.since()
		for range 10 * 60 * 50 {
			if os.Remove(n.active(web)) == nil {
				n.diskChanged()
			}
			time.Sleep(20 * time.Millisecond)
		}
		synctest.Wait()
		if tries := len(logged(isDone)); tries < 100 || tries > 250 {
			t.Errorf("restored %d times in ten minutes", tries)
		}
		if loud := logged(line.isLoud); len(loud) != 2 || loud[0].Level != "info" || loud[1].Level != "warn" { // restored; and undone again
			t.Errorf("logged %+v", loud)
		}
		n.pass(time.Minute) // whoever it was gave up
		n.wantFile(n.active(web))
		must(t, os.Remove(n.active(web)))
		n.diskChanged()
		n.wantFile(n.active(web)) // at once again
	})
}

// spoilWrites makes every write of the pod's manifest fail, in one directory, and returns how to let it succeed again.
func (n *node) spoilWrites(path string) (heal func()) {
	n.t.Helper()
	must(n.t, os.MkdirAll(filepath.Join(path, "somebody's"), 0o700))
	return func() {
		n.t.Helper()
		must(n.t, os.RemoveAll(path))
	}
}

func TestFailingWriteIsTriedAgainAndHoldsUpNobody(t *testing.T) {
	onNode(t, func(n *node) {
		web, gateway := daemonPod("web"), daemonPod("gateway")
		heal := n.spoilWrites(n.stored(web))
		logged := n.since()
		n.healthy(web, gateway)
		n.wantFile(n.stored(gateway))

		plans := n.pass(time.Hour)
		failures := logged(isFailure)
		if len(failures) < 800 || len(failures) > 1500 || plans > 2*len(failures) {
			t.Errorf("an hour: %d tries, %d plans", len(failures), plans)
		}
		for i, l := range failures {
			if loud := i == 0; l.isLoud() != loud || l.Pod != "kube-system/web-x7k2p" {
				t.Fatalf("failure %d: %+v", i, l)
			}
		}
		heal()
		n.pass(30 * time.Second)
		if info, err := os.Stat(n.stored(web)); err != nil || !info.Mode().IsRegular() {
			t.Fatalf("not saved: %v", err)
		}
		loud := logged(func(l line) bool { return l.isLoud() && l.Pod == "kube-system/web-x7k2p" })
		if len(loud) != 3 { // it failed, it was done, and the transition
			t.Errorf("logged %+v", loud)
		}
	})
}

func TestFailingActivationHoldsUpNoOther(t *testing.T) {
	onNode(t, func(n *node) {
		web, gateway := daemonPod("web"), daemonPod("gateway")
		n.healthy(web, gateway)
		heal := n.spoilWrites(n.active(web))
		n.powerCut(nil)
		n.wantFile(n.active(gateway))
		n.pass(time.Hour)
		must(t, os.Remove(n.active(gateway)))
		n.diskChanged()
		n.wantFile(n.active(gateway))
		heal()
		n.pass(30 * time.Second)
		n.wantFile(n.active(web))
	})
}

// Regression: a stored file that can't be repaired held back the activation, though memory had the good manifest.
func TestStoredFileThatCantBeRepairedDoesNotHoldBackItsActivation(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		must(t, os.Remove(n.stored(web)))
		must(t, os.MkdirAll(filepath.Join(n.stored(web), "not-ours"), 0o700))
		n.diskChanged()
		n.running() // the kubelet restarts, and everything is gone
		n.unsynced()
		n.apiGone()
		n.wantFile(n.active(web))
	})
}

func TestDirectoryThatIsMissingIsLookedForAgain(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.powerCut(nil)
		must(t, os.RemoveAll(n.dirs.Manifests))
		logged := n.since()
		n.diskChanged()
		if plans := n.pass(time.Hour); plans < 800 || plans > 1500 {
			t.Errorf("%d plans in an hour", plans)
		}
		if loud := logged(line.isLoud); len(loud) != 1 || loud[0].Level != "error" {
			t.Errorf("logged %+v", loud)
		}
		must(t, os.Mkdir(n.dirs.Manifests, 0o700)) // and nobody tells
		n.pass(30 * time.Second)
		n.wantFile(n.active(web))
	})
}

func TestNothingStartsOrStopsWhileTheRuntimeIsUnknown(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.boot(nil)
		n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeUnknown})
		n.unsynced()
		n.apiGone()
		n.pass(time.Hour)
		n.wantNoFile(n.active(web))
		n.running()
		n.wantFile(n.active(web))
		n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{State: checkpoint.RuntimeUnknown})
		n.synced(web)
		n.api(checkpoint.APIServing, web)
		n.pass(time.Hour)
		n.wantFile(n.active(web))
	})
}

func TestManifestThatTheKubeletIgnoresIsOfferedAgain(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		web.Spec.HostNetwork = true // else it may only wait for the pod network
		n.healthy(web)
		n.powerCut(nil)
		offered := func() string {
			data, err := os.ReadFile(n.active(web))
			must(t, err)
			return string(data)
		}
		first := offered()
		n.pass(checkpoint.DefaultPolicy().RejectedAfter - 1)
		if offered() != first {
			t.Error("changed too early")
		}
		n.pass(1)
		if offered() == first {
			t.Error("not changed")
		}
		n.runningCheckpoint(web)
		second := offered()
		n.pass(time.Hour)
		if offered() != second {
			t.Error("changed though the kubelet runs it")
		}
	})
}
