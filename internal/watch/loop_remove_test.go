package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func isQuestion(l line) bool { return l.Question != "" }

// gone is the API server saying that there is no pod any more.
func (n *node) gone() {
	n.cluster.set(func(c *fakeCluster) { c.pods = nil })
	n.running()
	n.synced()
	n.api(checkpoint.APIServing)
}

func TestRemovalWaitsForTheGraceAndForAConfirmation(t *testing.T) {
	onNode(t, func(n *node) {
		web := withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.healthy(web)
		n.wantFile(n.stored(web))
		n.gone()
		n.pass(n.loop.Config.Policy.Grace - time.Nanosecond)
		if asked := n.cluster.asked("pods"); asked != 0 {
			t.Errorf("%d LISTs before the grace is over", asked)
		}
		n.wantFile(n.stored(web))
		n.pass(time.Nanosecond)
		n.wantNoFile(n.stored(web))
		if left, err := os.ReadDir(n.dirs.Assets); err != nil || len(left) != 0 {
			t.Errorf("assets are left: %v, %v", left, err)
		}
		if asked := n.cluster.asked("pods"); asked != 1 {
			t.Errorf("%d LISTs", asked)
		}
		if plans := n.pass(time.Hour); plans > 2 {
			t.Errorf("%d plans with nothing left", plans)
		}
	})
}

func TestPodThatComesBackInTheGraceIsKept(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		for range 5 {
			n.gone()
			n.pass(n.loop.Config.Policy.Grace - time.Second)
			n.healthy(web)
			n.pass(time.Second)
		}
		n.wantFile(n.stored(web))
	})
}

func TestAnnotationThatIsTakenOffRemoves(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		plain := changed(web, "2", func(pod *corev1.Pod) { pod.Annotations = nil })
		n.healthy(plain)
		n.pass(n.loop.Config.Policy.Grace)
		n.wantNoFile(n.stored(web))
	})
}

// Regression: the watch left the namespace out and the live LIST did not, which was asked for without end.
func TestNamespaceThatIsNoLongerWatchedIsRemoved(t *testing.T) {
	onNode(t, func(n *node) {
		web, other := daemonPod("web"), daemonPod("other")
		other.Namespace = "default"
		n.boot(func(c *Config) { c.Namespaces = []string{"default", "kube-system"} })
		n.healthy(web, other)
		n.wantFile(n.stored(other))
		n.boot(nil)
		n.healthy(web, other)
		n.pass(n.loop.Config.Policy.Grace)
		n.wantNoFile(n.stored(other))
		n.wantFile(n.stored(web))
		if asked := n.cluster.asked("pods"); asked != 1 {
			t.Errorf("%d LISTs", asked)
		}
	})
}

func TestNothingIsRemovedWithoutAConfirmation(t *testing.T) {
	web := daemonPod("web")
	for name, test := range map[string]struct {
		obstacle    func(*fakeCluster)
		least, most int  // questions in an hour
		told        bool // that somebody has done something about it
	}{
		"the API server fails":          {func(c *fakeCluster) { c.err = errFake }, 100, 500, false},
		"the Node object is another":    {func(c *fakeCluster) { c.nodeUID = "another-uid" }, 5, 20, true},
		"a live LIST still has the pod": {func(c *fakeCluster) { c.pods = []*corev1.Pod{web} }, 100, 500, false},
	} {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(n *node) {
				n.healthy(web)
				n.gone()
				n.cluster.set(test.obstacle)
				logged, before := n.since(), n.cluster.asked("node")
				plans := n.pass(time.Hour)
				n.wantFile(n.stored(web))
				if asked := n.cluster.asked("node") - before; asked < test.least || asked > test.most || plans > 3*asked {
					t.Errorf("an hour: asked %d times, %d plans", asked, plans)
				}
				if loud := logged(line.isLoud); len(loud) != 1 || !isQuestion(loud[0]) {
					t.Errorf("logged %+v", loud)
				}
				n.cluster.set(func(c *fakeCluster) { c.err, c.nodeUID, c.pods = nil, "node-uid", nil })
				if test.told {
					n.diskChanged()
				}
				n.pass(30 * time.Second)
				n.wantNoFile(n.stored(web))
			})
		})
	}
}

// Regression: the identity was recorded at the first removal only, so that an emptied etcd before that had its way.
func TestEmptiedEtcdRemovesNothing(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.powerCut(nil)
		n.cluster.set(func(c *fakeCluster) { c.nodeUID, c.pods = "after-the-loss", nil })
		logged := n.since()
		n.synced()
		n.api(checkpoint.APIServing)
		n.pass(time.Hour)
		n.wantFile(n.stored(web))
		told := logged(func(l line) bool { return strings.Contains(l.Error, "after-the-loss") && l.isLoud() })
		if len(told) != 1 || !strings.Contains(told[0].Error, "node-uid") {
			t.Errorf("logged %+v", told)
		}
	})
}

// Regression: a lost record was made anew of whatever the API server said, an emptied etcd's Node object included.
func TestLostIdentityIsWrittenAgainAndNeverAskedFor(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		record := filepath.Join(n.dirs.Inactive, "state.json")
		n.wantFile(record)
		must(t, os.Remove(record))
		n.diskChanged()
		n.wantFile(record)
	})
}

func TestNothingIsRemovedWhileTheIdentityIsUnknown(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		n.powerCut(nil)
		must(t, os.Remove(filepath.Join(n.dirs.Inactive, "state.json")))
		n.cluster.set(func(c *fakeCluster) { c.nodeUID, c.pods = "after-the-loss", nil })
		n.boot(nil)
		n.synced()
		n.api(checkpoint.APIServing, daemonPod("made-by-a-controller-with-a-stale-cache"))
		n.pass(time.Hour)
		n.wantFile(n.stored(web))
	})
}

func TestRemovalIsGivenUpWhileTheApiServerIsNotThere(t *testing.T) {
	for _, state := range []checkpoint.API{checkpoint.APIUnknown, checkpoint.APIRefusing, checkpoint.APIFailing, checkpoint.APILost} {
		t.Run(state.String(), func(t *testing.T) {
			onNode(t, func(n *node) {
				web := daemonPod("web")
				n.healthy(web)
				n.gone()
				n.pass(n.loop.Config.Policy.Grace - time.Second)
				n.api(state)
				n.pass(time.Hour)
				n.wantFile(n.stored(web))
				n.api(checkpoint.APIServing) // the grace starts anew
				n.pass(n.loop.Config.Policy.Grace - time.Nanosecond)
				n.wantFile(n.stored(web))
			})
		})
	}
}

func TestUnscheduledAgentLeavesNoFile(t *testing.T) {
	onNode(t, func(n *node) {
		n.boot(func(c *Config) { c.SelfNamespace, c.SelfName = "kube-system", "agent-x7k2p" })
		agent, web := daemonPod("agent"), withVolume(daemonPod("web"))
		n.mount(web, "one")
		n.healthy(agent, web)
		n.wantFile(n.active(agent))
		n.wantFile(n.stored(web))

		logged := n.since()
		n.healthy(web) // the label that scheduled the agent is taken off
		n.pass(2 * n.loop.Config.Policy.Grace)
		var removed []string
		for _, l := range logged(isDone) {
			if l.Action == "remove" {
				removed = append(removed, l.Pod)
			}
		}
		if len(removed) != 2 || removed[1] != "kube-system/agent-x7k2p" {
			t.Errorf("removed %q; the own is to go last", removed)
		}
		if plans := n.pass(time.Hour); plans > 2 {
			t.Errorf("%d plans when all is done", plans)
		}
		n.diskChanged()
		for _, pod := range []*corev1.Pod{agent, web} {
			n.wantNoFile(n.active(pod))
			n.wantNoFile(n.stored(pod))
		}
		for _, dir := range []string{n.dirs.Assets, n.dirs.Inactive} {
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left (%v)", dir, err)
			}
		}
	})
}

// The API server lives on the checkpoint that it wants to have removed.
func TestLoadBearingCheckpointIsToldOfOnce(t *testing.T) {
	onNode(t, func(n *node) {
		api := daemonPod("api")
		n.healthy(api)
		n.running()
		n.synced()
		n.apiGone()
		n.pass(time.Minute)
		n.wantFile(n.active(api))
		n.runningCheckpoint(api)
		n.cluster.set(func(c *fakeCluster) { c.pods = nil })
		n.api(checkpoint.APIServing)
		logged := n.since()
		n.pass(n.loop.Config.Policy.Grace)
		n.wantNoFile(n.active(api))
		n.apiGone()
		n.pass(time.Minute)
		n.wantFile(n.active(api))
		told := logged(func(l line) bool { return strings.Contains(l.Message, "load-bearing") })
		if len(told) != 1 || told[0].Level != "warn" {
			t.Errorf("logged %+v", told)
		}
	})
}
