//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestRollOut is what people do to a node over the years: new revisions, good and bad, of the checkpointer and of what it
// keeps, a node that is taken out and put back, a cluster that is lost.
func TestRollOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.inOrder(ctx, []part{
		{"new revision of the checkpointer", newRevision},
		{"revision of the checkpointer that can't lead", revisionThatCannotLead},
		{"bad flag, then a power cut", badFlag},
		{"StatefulSet's pod with a new UID", statefulSetPod},
		{"checkpointer unscheduled by label", unscheduledByLabel},
		{"cluster restored empty", emptiedCluster},
	})
}

func newRevision(ctx context.Context, s *testSite) {
	old, lost := s.Self, error(nil)
	next := s.patch(ctx, "pod-checkpointer", ofCheckpointer, inContainer("checkpointer", `"env":[{"name":"REVISION","value":"2"}]`))
	s.eventually(ctx, "the new revision's checkpoint is active, and the old one's is gone", func() error {
		lost = errors.Join(lost, s.keepsTheOthers())
		if site.Exists(site.Active(old)) != nil {
			lost = errors.Join(lost, site.Exists(site.Active(next)))
		}
		return errors.Join(site.Exists(site.Active(next)), site.Exists(site.Stored(next)), site.Absent(site.Active(old)), site.Absent(site.Stored(old)))
	})
	s.step("no other checkpoint was ever missing", lost)
	s.Self = next
	s.step("its static copy runs", site.Soon(ctx, "the static copy", func(ctx context.Context) error {
		_, err := s.RunningContainer(ctx, site.Namespace, site.Static(next), "checkpointer")
		return err
	}))
}

// revisionThatCannotLead stands by like a good one, and dies as soon as it has the lock.
func revisionThatCannotLead(ctx context.Context, s *testSite) {
	onlyInAll(s.t)
	bad := s.patch(ctx, "pod-checkpointer", ofCheckpointer, inContainer("checkpointer", `"args":["run","--manifests-dir=/etc/kubernetes/nothing"]`))
	s.eventually(ctx, "its checkpoint is active", func() error { return site.Exists(site.Active(bad)) })
	s.eventually(ctx, "it is given up", func() error {
		return errors.Join(s.isStuck(ctx, bad), site.Absent(site.Active(bad)), site.Absent(site.Stored(bad)), site.Exists(site.Active(s.Self)), s.keepsTheOthers())
	})
	s.step("power is cut and on, and nothing of it is left", errors.Join(s.PowerCut(ctx), s.PowerOn(ctx), site.Absent(site.Active(bad)), site.Exists(site.Active(s.Self))))
	next := s.patch(ctx, "pod-checkpointer", ofCheckpointer, inContainer("checkpointer", `"args":["run"]`))
	s.eventually(ctx, "the revision after it leads", func() error {
		return errors.Join(site.Exists(site.Active(next)), site.Absent(site.Active(s.Self)), site.Absent(site.Stored(s.Self)), s.keepsTheOthers())
	})
	s.Self = next
}

// badFlag: the version before runs after the power cut.
func badFlag(ctx context.Context, s *testSite) {
	before, err := s.GatewayTestimony(ctx)
	s.step("gateway answers", err)
	bad := s.patch(ctx, "gateway", "app=gateway", inContainer("witness", `"args":["--no-such-flag"]`))
	s.step("the new version has crashed", site.Soon(ctx, "a crash", func(ctx context.Context) error {
		pod, err := s.Client().CoreV1().Pods(site.Namespace).Get(ctx, bad, metav1.GetOptions{})
		if err == nil && (len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount == 0) {
			err = fmt.Errorf("its phase is %s", pod.Status.Phase)
		}
		return err
	}))
	s.step("the API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut and on", errors.Join(s.PowerCut(ctx), s.PowerOn(ctx)))
	after, err := s.GatewayTestimony(ctx)
	s.step("gateway answers", err)
	if after.Env["POD_UID"] != before.Env["POD_UID"] {
		s.t.Errorf("the pod that answers is %s, want the version before, %s", after.Env["POD_UID"], before.Env["POD_UID"])
	}
	s.step("the API server is back", s.APIServer.Start(ctx))
	s.eventually(ctx, "the version before answers though the API server wants the bad one", func() error {
		now, err := s.GatewayTestimony(ctx)
		if err == nil && now.Env["POD_UID"] != before.Env["POD_UID"] {
			err = fmt.Errorf("the pod that answers is %s", now.Env["POD_UID"])
		}
		return errors.Join(err, s.isStuck(ctx, bad))
	})
	good := s.patch(ctx, "gateway", "app=gateway", inContainer("witness", `"args":["--listen=:7001"]`))
	s.step("gateway is ready", s.WaitDaemonSet(ctx, site.Namespace, "gateway"))
	s.eventually(ctx, "it is the real pod, and its checkpoint is stored", func() error {
		now, err := s.GatewayTestimony(ctx)
		if err == nil && now.Env["POD_NAME"] != good {
			err = fmt.Errorf("the pod that answers is %s", now.Env["POD_NAME"])
		}
		return errors.Join(err, site.Exists(site.Stored(good)), site.Absent(site.Active(s.Gateway)), site.Absent(site.Active(good)))
	})
	s.Gateway = good
}

// statefulSetPod is created again under its name: its checkpoint follows, and is the one that comes back.
func statefulSetPod(ctx context.Context, s *testSite) {
	manifest, err := os.ReadFile("testdata/statefulset.yaml")
	s.step("db is applied", errors.Join(err, s.Apply(ctx, manifest)))
	uid := func() (uid string) {
		s.eventually(ctx, "db-0 is Ready, and its checkpoint is of it", func() error {
			pod, err := s.Client().CoreV1().Pods(site.Namespace).Get(ctx, "db-0", metav1.GetOptions{})
			if err != nil {
				return err
			}
			uid = string(pod.UID)
			data, err := os.ReadFile(site.Stored("db-0"))
			if err == nil && !strings.Contains(string(data), uid) {
				err = errors.New("its checkpoint is of another pod")
			}
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				err = errors.Join(err, errors.New("it is not Ready"))
			}
			return err
		})
		return uid
	}
	first := uid()
	_, err = s.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, "db-0")
	s.step("db-0 is deleted", err)
	second := uid()
	if first == second {
		s.t.Fatal("it is the same pod")
	}
	s.step("the API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut and on", errors.Join(s.PowerCut(ctx), s.PowerOn(ctx)))
	after, err := lab.WaitTestimony(ctx, lab.NodeAddress+":7002")
	s.step("db-0 answers", err)
	if after.Env["POD_UID"] != second {
		s.t.Errorf("what answers is %s, want %s", after.Env["POD_UID"], second)
	}
	s.step("the API server is back", s.APIServer.Start(ctx))
	s.eventually(ctx, "the checkpoint is withdrawn", func() error { return site.Absent(site.Active("db-0")) })
	after, err = lab.WaitTestimony(ctx, lab.NodeAddress+":7002")
	s.step("db-0 answers", err)
	_, err = s.Kubectl(ctx, "delete", "statefulset", "-n", site.Namespace, "db")
	s.step("db is deleted", err)
	s.eventually(ctx, "nothing of its checkpoint is left", func() error {
		return errors.Join(site.Absent(site.Stored("db-0")), site.Absent(site.Active("db-0")), site.Absent(site.Assets("db-0")))
	})
}

// unscheduledByLabel: no file is left, and the pods run on. Scheduled again, it stores them anew.
func unscheduledByLabel(ctx context.Context, s *testSite) {
	onlyInAll(s.t)
	_, err := s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/checkpointer=yes")
	s.step("the node has a label", err)
	selector := `{"spec":{"template":{"spec":{"nodeSelector":{"example.com/checkpointer":"yes"}}}}}`
	next := s.patch(ctx, "pod-checkpointer", ofCheckpointer, selector)
	s.eventually(ctx, "the revision that asks for it leads", func() error {
		return errors.Join(site.Exists(site.Active(next)), site.Absent(site.Active(s.Self)))
	})
	_, err = s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/checkpointer-")
	s.step("the label is taken away", err)
	s.eventually(ctx, "no file is left", func() error {
		entries, err := os.ReadDir(lab.Manifests)
		if len(entries) > 0 {
			err = errors.Join(err, fmt.Errorf("%v is left", entries))
		}
		return errors.Join(err, site.Absent(site.InactiveDir), site.Absent(site.AssetsDir))
	})
	_, err = s.GatewayTestimony(ctx)
	s.step("gateway answers", err)
	_, err = s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/checkpointer=yes")
	s.step("the label is back", err)
	s.eventually(ctx, "every checkpoint is back", func() error {
		now, err := s.parents(ctx, ofCheckpointer)
		if err == nil && len(now) == 1 {
			s.Self = now[0]
		}
		return errors.Join(err, site.Exists(site.Active(s.Self)), s.keepsTheOthers())
	})
}

// emptiedCluster: the API server answers 200 with nothing, and nothing of ours is removed.
func emptiedCluster(ctx context.Context, s *testSite) {
	before := s.files()
	lost := time.Now()
	s.step("etcd and the API server are stopped", errors.Join(s.APIServer.Stop(ctx), s.Etcd.Stop(ctx)))
	s.step("etcd's data is lost", os.RemoveAll(filepath.Join(filepath.Dir(s.PKI()), "etcd")))
	s.step("both are back, empty", errors.Join(s.Etcd.Start(ctx), s.APIServer.Start(ctx)))
	s.step("the kubelet joins anew", errors.Join(s.Kubelet.Stop(ctx), s.Kubelet.Start(ctx)))
	s.eventually(ctx, "the checkpointer says that it removes nothing", func() error {
		for _, line := range s.log(lost) {
			if strings.Contains(line.Text, "nothing is removed: ") || strings.Contains(line.Text, ": nothing is removed;") {
				return nil
			}
		}
		return errors.New("no line of it")
	})
	after := s.files()
	for path := range before {
		if filepath.Dir(path) == site.InactiveDir && after[path] == "" {
			s.t.Errorf("%s was removed", path)
		}
	}
}
