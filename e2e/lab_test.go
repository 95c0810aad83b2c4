//go:build linux

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

func TestLab(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	begin := time.Now()
	step := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%6.2f s  %s", time.Since(begin).Seconds(), what)
	}
	cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
	step("cluster is up", err)
	node, err := lab.StartNode(ctx, cluster, lab.NodeOptions{})
	step("node is Ready", err)
	step("power cut", node.PowerCut(ctx))
	step("power on", node.PowerOn(ctx))
	step("Ready again", node.WaitReady(ctx))
}
