//go:build linux

package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
)

//go:embed testdata/depot.yaml
var depotWorkload []byte

const depotAddress = lab.NodeAddress + ":7005"

// TestOneOfTwoNodesIsCutOff: one node loses its link to the API server, then its power. Meanwhile the API server forgets
// one of its pods, which will have a successor, and deletes another one for good. When the link is back, what the API
// server wants runs there, once, and nothing else. The other node notices nothing of all that.
func TestOneOfTwoNodesIsCutOff(t *testing.T) {
	onlyInAll(t)
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("depot is applied", s.Apply(ctx, depotWorkload))
	depot := s.podOf(ctx, "depot")
	other := s.addNeighbour(ctx)

	s.step("the link is cut", s.BlackHole())
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	s.runAlone(ctx)
	t.Logf("%.1f s after the kubelet's start", time.Since(s.Kubelet.StartedAt()).Seconds())
	_, err := s.Kubectl(ctx, "delete", "daemonset", "-n", site.Namespace, "depot", "--wait=false")
	s.step("depot is deleted at the API server", err)
	_, err = s.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, s.Web, "--force", "--grace-period=0")
	s.step("web's pod is deleted at the API server, which no longer has it", err)
	s.runAlone(ctx)

	s.step("the link is back", s.EndBlackHole())
	s.settlesAfterLink(ctx, depot)
	other.untouched(ctx)
}

// runAlone waits until the checkpoints answer. It's patient: after a power cut the kubelet asks the API server for its
// Node between two rounds of mounting volumes, and where packets are dropped each such question takes 30 s
// (updateReconstructedFromNodeStatus in pkg/kubelet/volumemanager/reconciler).
func (s *testSite) runAlone(ctx context.Context) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	s.step("the checkpoints answer", lab.Wait(ctx, "the checkpoints' answers", func(ctx context.Context) error {
		ip, err := s.PodIP(ctx, site.Namespace, site.Static(s.Web))
		if err != nil {
			return err
		}
		_, web := lab.Testimony(ctx, ip+":8080")
		_, gateway := lab.Testimony(ctx, site.GatewayAddress)
		_, depot := lab.Testimony(ctx, depotAddress)
		return errors.Join(web, gateway, depot)
	}, s.Kubelet))
}

// podsOfWeb are the node's, without the mirror of a checkpoint.
func (s *testSite) podsOfWeb(ctx context.Context) (names []string, err error) {
	pods, err := s.PodsOf(ctx, site.Namespace, "app=web")
	for _, pod := range pods {
		if pod.Annotations[corev1.MirrorPodAnnotationKey] == "" {
			names = append(names, pod.Name)
		}
	}
	return names, err
}

// settlesAfterLink waits until exactly what the API server wants runs on the node that was cut off.
func (s *testSite) settlesAfterLink(ctx context.Context, depot string) {
	s.t.Helper()
	old := s.Web
	s.step("one copy of each wanted pod runs", lab.Wait(ctx, "the hand-over", func(ctx context.Context) error {
		web, err := s.podsOfWeb(ctx)
		if err != nil {
			return err
		}
		if len(web) != 1 || web[0] == old {
			return fmt.Errorf("the API server has the pods %v of web", web)
		}
		s.Web = web[0]
		return s.oneCopyOfEach(ctx)
	}, s.Kubelet))
	s.step("only the checkpointer's own checkpoint runs", site.Soon(ctx, "withdrawal", func(ctx context.Context) error {
		left, err := s.RunningCheckpoints(ctx)
		if err == nil && !slices.Equal(left, []string{s.Self}) {
			err = fmt.Errorf("checkpoints of %v still run", left)
		}
		return err
	}))
	s.step("the checkpoint of the deleted workload is gone", lab.Wait(ctx, "removal", func(context.Context) error {
		return errors.Join(site.Absent(site.Stored(depot)), site.Absent(site.Active(depot)), site.Absent(site.Assets(depot)))
	}))
	s.step("those of the pods that run are stored", site.Soon(ctx, "stored checkpoints", func(context.Context) error {
		return errors.Join(site.Exists(site.Stored(s.Web)), site.Exists(site.Stored(s.Gateway)), site.Exists(site.Active(s.Self)), site.Absent(site.Active(old)))
	}))
	s.step("one copy of each still runs", s.oneCopyOfEach(ctx))
}

// neighbour is the other node, as it was when everything ran.
type neighbour struct {
	*testSite
	node   *lab.Neighbour
	since  time.Time
	pods   map[string]string
	files  map[string]string
	client *uptime.Watch
}

// addNeighbour adds a node to the site, with all its checkpoints stored.
func (s *testSite) addNeighbour(ctx context.Context) *neighbour {
	s.t.Helper()
	node, err := lab.StartNeighbour(ctx)
	s.step("another node is Ready", err)
	s.t.Cleanup(func() { s.step("the other node is closed", node.Close()) })
	_, err = s.Kubectl(ctx, "label", "node", lab.NeighbourName, "example.com/site=edge")
	s.step("it is labelled", err)
	n := &neighbour{testSite: s, node: node}
	s.step("its pods are ready, and its checkpoints stored", lab.Wait(ctx, "the other node", func(ctx context.Context) (err error) {
		n.pods, err = n.runningPods(ctx)
		stored, _ := filepath.Glob(n.node.Path(site.InactiveDir) + "/" + site.Namespace + "_*")
		active, _ := filepath.Glob(n.node.Path(lab.Manifests) + "/" + site.Namespace + "_*")
		if err == nil && (len(n.pods) != 4 || len(stored) != 3 || len(active) != 1) {
			err = fmt.Errorf("pods: %v, stored: %v, active: %v", n.pods, stored, active)
		}
		return errors.Join(err, n.standsBy())
	}))
	n.files, n.since = n.manifests(), time.Now()
	n.client = uptime.Begin(func(ctx context.Context) error {
		_, err := lab.Testimony(ctx, lab.NeighbourAddress+":7001")
		return err
	})
	return n
}

// standsBy is nil once the second copy of the node's checkpointer has said so, which is the last that it says.
func (n *neighbour) standsBy() error {
	lines, err := site.LogIn(n.node.Path(lab.Logs), time.Time{})
	if err == nil && !slices.ContainsFunc(lines, func(l site.LogLine) bool { return strings.HasPrefix(l.Message, "standing by") }) {
		err = errors.New("no copy of its checkpointer stands by")
	}
	return err
}

// untouched fails the test unless everything is as it was.
func (n *neighbour) untouched(ctx context.Context) {
	n.t.Helper()
	pods, err := n.runningPods(ctx)
	n.step("the other node's pods are ready", err)
	if diff := cmp.Diff(n.pods, pods); diff != "" {
		n.t.Errorf("the other node's containers differ (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(n.files, n.manifests()); diff != "" {
		n.t.Errorf("the other node's manifests differ (-before +after):\n%s", diff)
	}
	if outages := n.client.End(); len(outages) > 0 {
		n.t.Errorf("a client of the other node had outages: %v: %v", outages, outages[0].Why)
	}
	lines, err := site.LogIn(n.node.Path(lab.Logs), n.since)
	n.step("the other node's log is read", err)
	if len(lines) > 0 {
		n.t.Errorf("the other node's checkpointer did something:\n%s", lines)
	}
}

// manifests maps each of the node's manifests to its content.
func (n *neighbour) manifests() map[string]string {
	n.t.Helper()
	return n.filesIn(n.node.Path(lab.Manifests), n.node.Path(site.InactiveDir))
}

// runningPods maps each pod of the node to its container, with the number of restarts; an error if one isn't ready.
func (n *neighbour) runningPods(ctx context.Context) (map[string]string, error) {
	list, err := n.Client().CoreV1().Pods(site.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + lab.NeighbourName})
	if err != nil {
		return nil, err
	}
	pods := map[string]string{}
	for _, pod := range list.Items {
		for _, c := range pod.Status.ContainerStatuses {
			pods[pod.Name] = fmt.Sprintf("%s, %d restarts", c.ContainerID, c.RestartCount)
			if !c.Ready {
				err = errors.Join(err, fmt.Errorf("%s isn't ready", pod.Name))
			}
		}
	}
	return pods, err
}
