//go:build linux

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

//go:embed testdata/witnesses.yaml
var witnesses []byte

//go:embed testdata/static-witness.yaml
var staticWitness []byte

const (
	hostWitness  = lab.NodeAddress + ":7001"
	staticOnHost = lab.NodeAddress + ":7002"
	podPort      = ":8080"
)

// timeline reports each step of a test with its time, and ends the test with
// the first that fails.
type timeline struct {
	t     *testing.T
	begin time.Time
}

func (l timeline) step(what string, err error) {
	l.t.Helper()
	at := fmt.Sprintf("%6.2f s  %s", time.Since(l.begin).Seconds(), what)
	if err != nil {
		l.t.Fatalf("%s: %v", at, err)
	}
	l.t.Log(at)
}

// start brings up a cluster and a node. The test's end closes them, so that the
// next test can start its own.
func (l timeline) start(ctx context.Context) (*lab.Cluster, *lab.Node) {
	l.t.Helper()
	cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
	l.step("cluster is up", err)
	l.t.Cleanup(func() { l.step("cluster is closed", cluster.Close(context.Background())) })
	node, err := lab.StartNode(ctx, cluster, lab.NodeOptions{})
	l.step("node is Ready", err)
	l.t.Cleanup(func() { l.step("node is closed", node.Close(context.Background())) })
	return cluster, node
}

// TestPowerCycle sees what the kubelet alone does: a static pod runs without the
// API server, pods from the API come back once it's there, not before.
func TestPowerCycle(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	l := timeline{t, time.Now()}
	cluster, node := l.start(ctx)
	l.step("witnesses are applied", cluster.Apply(ctx, witnesses))
	l.step("host witness is ready", cluster.WaitDaemonSet(ctx, "default", "host-witness"))
	l.step("pod witness is ready", cluster.WaitDaemonSet(ctx, "default", "pod-witness"))
	before, err := lab.WaitTestimony(ctx, hostWitness, "/etc/witness")
	l.step("host witness answers", err)
	if got := before.Dirs["/etc/witness"]; len(got) != 2 || got[1].Path != "greeting" || got[1].Size != 5 {
		t.Errorf("host witness sees %+v in /etc/witness, want one file greeting of 5 bytes", got)
	}
	l.step("pod witness answers", podAnswers(ctx, cluster, node))

	l.step("API server is stopped", cluster.APIServer.Stop(ctx))
	l.step("power cut", node.PowerCut(ctx))
	if _, err := lab.Testimony(ctx, hostWitness); err == nil {
		t.Error("the host witness answers after the power cut")
	}
	manifest := filepath.Join(lab.Manifests, "static-witness.yaml")
	l.step("manifest is written", os.WriteFile(manifest, staticWitness, 0o644))
	l.step("power on", node.PowerOn(ctx))
	_, err = lab.WaitTestimony(ctx, staticOnHost)
	l.step("static witness answers without API server", err)
	_, err = node.RunningContainer(ctx, "default", "static-witness-"+lab.NodeName, "witness")
	l.step("static witness runs, says the runtime", err)
	if _, err := lab.Testimony(ctx, hostWitness); err == nil {
		t.Error("the host witness came back without an API server")
	}

	l.step("API server is back", cluster.APIServer.Start(ctx))
	after, err := lab.WaitTestimony(ctx, hostWitness)
	l.step("host witness is back", err)
	if after.Env["POD_UID"] != before.Env["POD_UID"] || !after.Started.After(before.Started) {
		t.Errorf("host witness is pod %s since %s, want pod %s, started again",
			after.Env["POD_UID"], after.Started, before.Env["POD_UID"])
	}
	l.step("pod witness is back", podAnswers(ctx, cluster, node))
	l.step("node is Ready again", node.WaitReady(ctx))
}

// podAnswers waits until the witness on the pod network answers.
func podAnswers(ctx context.Context, cluster *lab.Cluster, node *lab.Node) error {
	return lab.Wait(ctx, "pod witness to answer", func(ctx context.Context) error {
		pods, err := cluster.PodsOf(ctx, "default", "app=pod-witness")
		if err != nil {
			return err
		}
		if len(pods) != 1 {
			return fmt.Errorf("there are %d pods of it", len(pods))
		}
		ip, err := node.PodIP(ctx, "default", pods[0].Name)
		if err != nil {
			return err
		}
		_, err = lab.Testimony(ctx, ip+podPort)
		return err
	}, node.Kubelet, node.Containerd)
}
