//go:build linux

package lab

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// These tests stay on the real machine and start a lab as another process,
// which is this test binary again.
const childVariable = "LAB_TEST_CHILD"

func TestMain(m *testing.M) {
	if err := possible(); err != nil {
		notRun(err)
	}
	if how := os.Getenv(childVariable); how != "" {
		Enter()
		child(how)
	}
	os.Exit(m.Run())
}

// child runs a lab with everything in it, says where it lives, and ends as told.
func child(how string) {
	ctx := context.Background()
	if how != "idle" {
		if err := bringUp(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	fmt.Println(here.run.Dir)
	switch how {
	case "idle":
		os.Exit(0)
	case "fail":
		os.Exit(7)
	default:
		select {} // until somebody kills it
	}
}

func bringUp(ctx context.Context) error {
	c, err := StartCluster(ctx, ClusterOptions{})
	if err != nil {
		return err
	}
	n, err := StartNode(ctx, c, NodeOptions{})
	if err != nil {
		return err
	}
	// A pod gives the lab shims, cgroups, a network namespace and cables.
	pod := `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "default"},
		"spec": {"containers": [{"name": "w", "image": "` + WitnessImage + `", "imagePullPolicy": "Never"}]}}`
	if err := os.WriteFile(Manifests+"/w.json", []byte(pod), 0o644); err != nil {
		return err
	}
	return Wait(ctx, "pod to run", func(ctx context.Context) error {
		_, err := n.RunningContainer(ctx, "default", "w-"+NodeName, "w")
		return err
	}, n.Kubelet)
}

func TestNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		name   string
		how    string
		victim func(outer int, parents map[int]int) int // whom to kill; nil: it ends by itself
		status int
	}{
		{name: "after a failure", how: "fail", status: 7},
		{name: "program killed", how: "wait", victim: program, status: 128 + 9},
		{name: "init killed", how: "wait", victim: initProcess, status: 128 + 9},
		{name: "outer process killed", how: "wait", victim: func(outer int, _ map[int]int) int { return outer }, status: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := settings(t)
			logs := t.TempDir()
			cmd, dir := start(t, c.how, logs)
			if c.victim != nil {
				if traces(t, dir) == nil {
					t.Fatal("a running lab leaves no traces: this test can't see any")
				}
				kill(t, c.victim(cmd.Process.Pid, processes(t)))
			}
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("exit status %d, want %d", got, c.status)
			}
			waitUntilGone(t, dir)
			if after := settings(t); !slices.Equal(before, after) {
				t.Errorf("the machine's settings were %q, are %q", before, after)
			}
			if _, err := os.Stat(filepath.Join(logs, NodeName, "kubelet.log")); err != nil && c.status != -1 {
				t.Errorf("the kubelet's log wasn't saved: %v", err)
			}
		})
	}
}

// TestSweep kills the janitor too: then it's the next run that cleans up.
func TestSweep(t *testing.T) {
	cmd, dir := start(t, "wait", t.TempDir())
	parents := processes(t)
	for pid, parent := range parents {
		if parent == cmd.Process.Pid && pid != initProcess(parent, parents) {
			kill(t, pid)
		}
	}
	kill(t, cmd.Process.Pid)
	cmd.Wait()
	if err := exists(dir); err != nil {
		t.Fatalf("somebody else cleaned up: %v", err)
	}
	next, _ := start(t, "idle", t.TempDir())
	if err := next.Wait(); err != nil {
		t.Fatal(err)
	}
	waitUntilGone(t, dir)
}

// start starts a child and returns when it has said where it lives.
func start(t *testing.T, how, logs string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+how, "LAB_ARTIFACTS="+logs)
	cmd.Stderr = &strings.Builder{}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		cmd.Wait()
		t.Fatalf("the lab didn't come up:\n%s", cmd.Stderr)
	}
	return cmd, lines.Text()
}

func waitUntilGone(t *testing.T, dir string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := Wait(ctx, "everything to be gone", func(context.Context) error {
		if left := traces(t, dir); left != nil {
			return fmt.Errorf("left: %q", left)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
