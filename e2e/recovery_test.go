//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

// TestRecovery is the main job from end to end on one node, in the order of a node's life.
func TestRecovery(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	before := s.testimonies(ctx, s.Web)

	with := func(run func(context.Context, *testSite, testimonies)) func(context.Context, *testSite) {
		return func(ctx context.Context, s *testSite) { run(ctx, s, before) }
	}
	s.inOrder(ctx, []part{
		{"API server away while pods run", with(apiServerAway)},
		{"own manifest spoiled by hand", func(ctx context.Context, s *testSite) { spoil(ctx, s, s.Self, "checkpointer") }},
		{"power cut without API server", with(powerCut)},
		{"active manifest spoiled by hand", func(ctx context.Context, s *testSite) { spoil(ctx, s, s.Web, "witness") }},
		{"API server returns", with(apiServerReturns)},
		{"DaemonSet deleted", daemonSetDeleted},
		{"checkpointer deleted", checkpointerDeleted},
	})
}

// same compares what must not differ between a pod and its checkpoint.
func (s *testSite) same(before, after witness.Testimony) {
	s.t.Helper()
	if diff := cmp.Diff(before.Dirs, after.Dirs); diff != "" {
		s.t.Errorf("the files differ (-before +after):\n%s", diff)
	}
	for _, name := range []string{"POD_NAME", "POD_UID", "NODE_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"} {
		if before.Env[name] != after.Env[name] {
			s.t.Errorf("%s is %q, before it was %q", name, after.Env[name], before.Env[name])
		}
	}
}

// apiServerAway: nothing is activated, nothing removed, and nothing logged after the line that says so.
func apiServerAway(ctx context.Context, s *testSite, before testimonies) {
	manifests := s.files()
	stopped := time.Now()
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("checkpointer says so", s.says(ctx, "lost", stopped))
	quiet := time.Now()
	s.step("a minute passes", lab.Wait(ctx, "a minute", func(context.Context) error {
		if left := time.Minute - time.Since(quiet); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	}))
	for _, line := range s.log(quiet) {
		if line.Level != "debug" {
			s.t.Errorf("logged during the outage: %s", line.Text)
		}
	}
	if diff := cmp.Diff(manifests, s.files()); diff != "" {
		s.t.Errorf("files of ours changed (-before +after):\n%s", diff)
	}
	after := s.testimonies(ctx, s.Web)
	if after.web.PID != before.web.PID || !after.web.Started.Equal(before.web.Started) || !after.gateway.Started.Equal(before.gateway.Started) {
		s.t.Error("a pod was restarted")
	}
	s.step("API server is back", s.APIServer.Start(ctx))
	s.step("checkpointer says so", s.says(ctx, "serving", quiet))
}

// says waits for the line about a change of the API server's state.
func (s *testSite) says(ctx context.Context, state string, since time.Time) error {
	return site.Soon(ctx, "the line about the API server", func(context.Context) error {
		if !slices.ContainsFunc(s.log(since), func(line site.LogLine) bool { return line.To == state }) {
			return fmt.Errorf("no line says that the API server is %s", state)
		}
		return nil
	})
}

// files maps each manifest of the node to its content.
func (s *testSite) files() map[string]string {
	s.t.Helper()
	return s.filesIn(lab.Manifests, site.InactiveDir)
}

func (s *testSite) filesIn(dirs ...string) map[string]string {
	s.t.Helper()
	contents := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			data, err := os.ReadFile(path)
			if err != nil {
				s.t.Fatal(err)
			}
			contents[path] = string(data)
		}
	}
	return contents
}

// powerCut: the pods run again without an API server, and see the same files.
func powerCut(ctx context.Context, s *testSite, before testimonies) {
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	if _, err := lab.Testimony(ctx, site.GatewayAddress); err == nil {
		s.t.Fatal("gateway answers without power")
	}
	s.step("power is on", s.PowerOn(ctx))
	after := s.testimonies(ctx, site.Static(s.Web))
	s.same(before.web, after.web)
	s.same(before.gateway, after.gateway)
}

// apiServerReturns: each real pod runs again, its checkpoint is withdrawn, and one copy is left of each.
func apiServerReturns(ctx context.Context, s *testSite, before testimonies) {
	ctx, cancel := context.WithTimeout(ctx, 150*time.Second)
	defer cancel()
	s.step("API server is back", s.APIServer.Start(ctx))
	s.step("checkpoints are withdrawn", lab.Wait(ctx, "withdrawal", func(ctx context.Context) error {
		left, err := s.RunningCheckpoints(ctx)
		if err == nil && !slices.Equal(left, []string{s.Self}) {
			err = fmt.Errorf("checkpoints of %v still run", left)
		}
		return errors.Join(err, site.Absent(site.Active(s.Web)), site.Absent(site.Active(s.Gateway)))
	}, s.Kubelet))
	for _, name := range []string{"web", "gateway", "pod-checkpointer"} {
		s.step(name+" is ready", s.WaitDaemonSet(ctx, site.Namespace, name))
	}
	after := s.testimonies(ctx, s.Web)
	if after.web.Env["POD_UID"] != before.web.Env["POD_UID"] || after.gateway.Env["POD_UID"] != before.gateway.Env["POD_UID"] {
		s.t.Error("the pods are not the ones from before the power cut")
	}
	s.step("one copy of each runs", s.oneCopyOfEach(ctx))
	s.step("no pod is left failed", site.Soon(ctx, "every pod to run", func(ctx context.Context) error {
		pods, err := s.Client().CoreV1().Pods(site.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodRunning {
				err = errors.Join(err, fmt.Errorf("%s is %s: %s", pod.Name, pod.Status.Phase, pod.Status.Message))
			}
		}
		return err
	}))
}

func (s *testSite) oneCopyOfEach(ctx context.Context) error {
	running, err := s.copies(ctx)
	if err != nil {
		return err
	}
	if want := map[string][]string{"web": {s.Web}, "gateway": {s.Gateway}}; !maps.EqualFunc(running, want, slices.Equal) {
		return fmt.Errorf("running: %v, want %v", running, want)
	}
	return nil
}

// daemonSetDeleted: after the grace, the confirmation and the termination nothing of its checkpoint is left.
func daemonSetDeleted(ctx context.Context, s *testSite) {
	_, err := s.Kubectl(ctx, "delete", "daemonset", "-n", site.Namespace, "web")
	s.step("web is deleted", err)
	deleted := time.Now()
	s.step("its checkpoint is gone", lab.Wait(ctx, "removal", func(context.Context) error {
		return errors.Join(site.Absent(site.Stored(s.Web)), site.Absent(site.Active(s.Web)), site.Absent(site.Assets(s.Web)))
	}))
	if grace := time.Since(deleted); grace < 50*time.Second {
		s.t.Errorf("it was removed after %v, before the grace of a minute", grace)
	}
	s.step("the others' are there", errors.Join(site.Exists(site.Stored(s.Gateway)), site.Exists(site.Stored(s.Self)), site.Exists(site.Active(s.Self))))
}

// checkpointerDeleted: it removes every checkpoint, though the pods are still wanted, and itself, and leaves nothing.
func checkpointerDeleted(ctx context.Context, s *testSite) {
	_, err := s.Kubectl(ctx, "delete", "-k", "../deploy/base")
	s.step("the checkpointer is deleted", err)
	s.step("nothing of it is left on disk", lab.Wait(ctx, "removal", func(context.Context) error {
		entries, err := os.ReadDir(lab.Manifests)
		if len(entries) > 0 {
			err = errors.Join(err, fmt.Errorf("%v is left", entries))
		}
		return errors.Join(err, site.Absent(site.InactiveDir), site.Absent(site.AssetsDir))
	}))
	s.step("no copy of it runs", site.Soon(ctx, "its end", func(ctx context.Context) error {
		if _, err := s.RunningContainer(ctx, site.Namespace, site.Static(s.Self), "checkpointer"); err == nil {
			return errors.New("its static copy runs")
		}
		return nil
	}))
	_, err = s.GatewayTestimony(ctx)
	s.step("gateway still answers", err)
}
