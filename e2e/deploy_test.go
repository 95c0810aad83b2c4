//go:build linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// TestDeploy holds deploy/ to a real API server. There is no kubelet: nothing runs.
func TestDeploy(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	l := timeline{t, time.Now()}
	cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
	l.step("cluster is up", err)
	t.Cleanup(func() { l.step("cluster is closed", cluster.Close(context.Background())) })
	t.Run("each kustomization is accepted", func(t *testing.T) {
		timeline{t, time.Now()}.acceptEach(ctx, cluster)
	})
	t.Run("the ServiceAccount needs each of its rules", func(t *testing.T) {
		needEachRule(ctx, timeline{t, time.Now()}, cluster)
	})
}

// acceptEach has every kustomization applied by the server, which checks and admits it and stores nothing.
func (l timeline) acceptEach(ctx context.Context, cluster *lab.Cluster) {
	overlays, err := filepath.Glob("../deploy/overlays/*")
	l.step("overlays are found", err)
	if len(overlays) < 5 {
		l.t.Fatalf("there are only the overlays %q", overlays)
	}
	for _, dir := range append(overlays, "../deploy/base") {
		printed, err := cluster.Kubectl(ctx, "apply", "--server-side", "--dry-run=server", "--warnings-as-errors", "-k", dir)
		l.step(filepath.Base(dir)+" is accepted", err)
		if !strings.Contains(printed, "daemonset.apps/pod-checkpointer serverside-applied (server dry run)") {
			l.t.Errorf("%s: kubectl says\n%s", dir, printed)
		}
	}
}

// writeServiceAccountOverlay writes a kustomization that does what the one in deploy/overlays/rbac asks for: it names the
// API server.
func writeServiceAccountOverlay(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	kubeconfig, err := os.ReadFile("../deploy/overlays/rbac/kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := filepath.Abs("../deploy/overlays/rbac")
	if err == nil {
		overlay, err = filepath.Rel(dir, overlay)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"kubeconfig": strings.Replace(string(kubeconfig), "https://api.example.com:6443", "https://"+lab.APIAddress+":6443", 1),
		"kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [` + overlay + `]
configMapGenerator:
- {name: pod-checkpointer, namespace: kube-system, behavior: merge, files: [kubeconfig]}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
