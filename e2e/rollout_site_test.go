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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// patch changes the template of a DaemonSet, and returns the name of the pod that the controller makes of it.
func (s *testSite) patch(ctx context.Context, daemonSet, selector, patch string) (pod string) {
	s.t.Helper()
	before, err := s.parents(ctx, selector)
	s.step("its pods are listed", err)
	s.step(daemonSet+" is changed", s.change(ctx, daemonSet, patch))
	s.step("its new pod is there", site.Soon(ctx, "a new pod", func(ctx context.Context) error {
		now, err := s.parents(ctx, selector)
		for _, name := range now {
			if !slices.Contains(before, name) {
				pod = name
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("there are %v", now))
	}))
	return pod
}

// change changes the template of a DaemonSet.
func (s *testSite) change(ctx context.Context, daemonSet, patch string) error {
	_, err := s.Kubectl(ctx, "patch", "daemonset", "-n", site.Namespace, daemonSet, "--type=strategic", "-p", patch)
	return err
}

// parents are the names of the pods that are no mirror pods.
func (s *testSite) parents(ctx context.Context, selector string) (names []string, err error) {
	pods, err := s.PodsOf(ctx, site.Namespace, selector)
	for _, pod := range pods {
		if pod.Annotations["kubernetes.io/config.mirror"] == "" {
			names = append(names, pod.Name)
		}
	}
	return names, err
}

const ofCheckpointer = "app.kubernetes.io/name=pod-checkpointer"

func inContainer(container, change string) string {
	return fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,%s}]}}}}`, container, change)
}

// eventually waits for what takes the checkpointer's own patience: minutes at most.
func (s *testSite) eventually(ctx context.Context, what string, check func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	s.step(what, lab.Wait(ctx, what, func(context.Context) error { return check() }, s.Kubelet))
}

// keepsTheOthers is an error if a checkpoint of the workloads is missing.
func (s *testSite) keepsTheOthers() error {
	return errors.Join(site.Exists(site.Stored(s.Web)), site.Exists(site.Stored(s.Gateway)))
}

// isStuck is an error unless the pod is marked as stuck on disk.
func (s *testSite) isStuck(ctx context.Context, pod string) error {
	found, err := s.Client().CoreV1().Pods(site.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	state, err := os.ReadFile(filepath.Join(site.InactiveDir, "state.json"))
	if mark := fmt.Sprintf(`"stuck":%q`, found.UID); err == nil && !strings.Contains(string(state), mark) {
		err = fmt.Errorf("%s is not in state.json: %s", mark, state)
	}
	return err
}
