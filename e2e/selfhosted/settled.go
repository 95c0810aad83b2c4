//go:build linux

package selfhosted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// WaitAnswers waits until the API server answers a question of the admin that needs etcd.
func (p *ControlPlane) WaitAnswers(ctx context.Context) error {
	return lab.Wait(ctx, "the API to answer", p.Answers, p.Kubelet)
}

// Answers asks the API server once.
func (p *ControlPlane) Answers(ctx context.Context) error {
	_, err := p.Client().CoreV1().Nodes().Get(ctx, lab.NodeName, metav1.GetOptions{})
	return err
}

// WaitReady waits until every component has exactly one real pod, which is Ready.
func (p *ControlPlane) WaitReady(ctx context.Context) error {
	return lab.Wait(ctx, "one Ready pod of each component", p.ready, p.Kubelet)
}

func (p *ControlPlane) ready(ctx context.Context) (all error) {
	for _, c := range Components {
		pods, err := p.Parents(ctx, c)
		switch {
		case err != nil:
			return err
		case len(pods) != 1:
			all = errors.Join(all, fmt.Errorf("%s has the pods %v", c, Names(pods)))
		case !isReady(pods[0]):
			all = errors.Join(all, fmt.Errorf("%s isn't Ready: it is %s %s", pods[0].Name, pods[0].Status.Phase, pods[0].Status.Message))
		}
	}
	return all
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// WaitStored waits until each real pod has a stored checkpoint.
func (p *ControlPlane) WaitStored(ctx context.Context) error {
	return lab.Wait(ctx, "a stored checkpoint of each component", p.stored, p.Kubelet)
}

// stored is nil if each real pod has a stored checkpoint. That of the revision before stays beside it for a day.
func (p *ControlPlane) stored(ctx context.Context) (all error) {
	for _, c := range Components {
		pods, err := p.Parents(ctx, c)
		if err != nil {
			return err
		}
		for _, name := range Names(pods) {
			all = errors.Join(all, site.Exists(site.Stored(name)))
		}
	}
	return all
}

// holds is nil if the manifests in the directory are those of the pods.
func holds(dir string, want []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var got []string
	for _, entry := range entries {
		if name, ok := strings.CutPrefix(entry.Name(), site.Namespace+"_"); ok {
			got = append(got, strings.TrimSuffix(name, ".json"))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s holds %v, want %v", dir, got, want)
	}
	return nil
}

// WaitSettled waits until all is as it should be for good: of each component the real pod runs, Ready, and no other copy;
// its checkpoint is stored; the only active one is the checkpointer's own.
func (p *ControlPlane) WaitSettled(ctx context.Context) error {
	return lab.Wait(ctx, "the cluster to settle", p.Settled, p.Kubelet)
}

// Settled is nil if the cluster has settled.
func (p *ControlPlane) Settled(ctx context.Context) error {
	if err := p.ready(ctx); err != nil {
		return err
	}
	self, err := p.Parents(ctx, Checkpointer)
	if err != nil {
		return err
	}
	return errors.Join(p.stored(ctx), holds(lab.Manifests, Names(self)), p.oneCopyOfEach(ctx))
}

// oneCopyOfEach is nil if, says the runtime, each component's real pod runs once, no other pod of it does, and the
// checkpointer's static copy stands by.
func (p *ControlPlane) oneCopyOfEach(ctx context.Context) error {
	sandboxes, err := p.Sandboxes(ctx)
	if err != nil {
		return err
	}
	var all error
	for _, c := range Components {
		pods, err := p.Parents(ctx, c)
		if err != nil {
			return err
		}
		want := Names(pods)
		if c == Checkpointer {
			for _, name := range Names(pods) {
				want = append(want, site.Static(name))
			}
		}
		var got []string
		for _, s := range sandboxes {
			if s.State == runtime.PodSandboxState_SANDBOX_READY && s.Labels[c.label()] == string(c) {
				got = append(got, s.Metadata.Name)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			all = errors.Join(all, fmt.Errorf("of %s run %v, want %v", c, got, want))
		}
	}
	return all
}
