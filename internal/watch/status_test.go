package watch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// withStatus boots a loop that keeps a status file.
func withStatus(n *node) (path string) {
	path = filepath.Join(filepath.Dir(n.dirs.Manifests), "x.status.json")
	n.boot(func(c *Config) {
		c.StatusFile, c.Agent = path, status.Agent{Version: "v1", Node: "node1"}
		c.SelfNamespace, c.SelfName = "kube-system", "pod-checkpointer-x7k2p"
	})
	return path
}

func (n *node) status(path string) status.Report {
	n.t.Helper()
	report, err := status.Read(path)
	must(n.t, err)
	return report
}

func TestTheStatusFileTellsOfEachLineage(t *testing.T) {
	onNode(t, func(n *node) {
		path := withStatus(n)
		web, odd := daemonPod("web"), daemonPod("odd")
		web.Status.QOSClass = corev1.PodQOSGuaranteed
		runtimeClass := "kata"
		odd.Spec.RuntimeClassName = &runtimeClass
		n.healthy(web, odd)
		r := n.status(path)
		if r.Agent == nil || r.Agent.Version != "v1" || r.API.State != "serving" || r.Kubelet.State != "synced" || r.Runtime.State != "known" {
			t.Errorf("agent and sources: %+v", r)
		}
		if len(r.Lineages) != 2 {
			t.Fatalf("%d lineages: %+v", len(r.Lineages), r.Lineages)
		}
		for _, l := range r.Lineages {
			switch {
			case l.Pod == web.Name && l.Phase == "stored" && l.Reason == "parent-up" && l.Up && l.Generation != "" && l.Current != nil && *l.Current && l.QOSClass == "Guaranteed":
			case l.Pod == odd.Name && l.Phase == "absent" && l.Reason == "no-checkpoint" && l.Generation == "":
			default:
				t.Errorf("lineage: %+v", l)
			}
		}
		if len(r.Refused) != 1 || r.Refused[0].Pod != odd.Name || len(r.Refused[0].Reasons) != 1 {
			t.Errorf("refused: %+v", r.Refused)
		}
	})
}

func TestTheStatusFileIsWrittenOnlyWhenSomethingChanges(t *testing.T) {
	onNode(t, func(n *node) {
		path := withStatus(n)
		n.healthy(daemonPod("web"))
		n.pass(time.Hour) // also over what is waited for after a checkpoint is stored
		before := *n.status(path).Written
		n.pass(time.Hour)
		n.diskChanged()
		if after := *n.status(path).Written; !after.Equal(before) {
			t.Errorf("it was written again after %v", after.Sub(before))
		}
		n.apiGone()
		if r := n.status(path); r.API.State != "lost" || r.Written.Equal(before) {
			t.Errorf("a change was not written: %+v", r)
		}
	})
}

func TestTheStatusFileGoesWithTheAgent(t *testing.T) {
	onNode(t, func(n *node) {
		path := withStatus(n)
		self := daemonPod("pod-checkpointer")
		n.healthy(self)
		n.wantFile(path)
		n.cluster.set(func(c *fakeCluster) { c.pods = nil })
		n.api(checkpoint.APIServing)
		n.running()
		n.synced()
		n.pass(5 * time.Minute)
		n.wantNoFile(n.stored(self))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the status file is left: %v", err)
		}
	})
}

func TestAStatusFileThatCantBeWrittenIsSaidOnce(t *testing.T) {
	onNode(t, func(n *node) {
		said := n.since()
		n.boot(func(c *Config) { c.StatusFile = filepath.Join(n.kubelet, "absent", "x.status.json") })
		n.healthy(daemonPod("web"))
		n.apiGone()
		if lines := said(func(l line) bool {
			return l.isLoud() && l.Message == "the status file can't be written: the command status tells of an earlier time"
		}); len(lines) != 1 {
			t.Errorf("said %d times", len(lines))
		}
		n.wantFile(n.stored(daemonPod("web")))
	})
}
