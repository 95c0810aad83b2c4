//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
)

// asker has the agent's client ask the API server for all that the agent ever asks for.
type asker struct {
	*lab.Cluster
	kubeconfig string
}

// isForbidden is nil if the server refuses something.
func (a asker) isForbidden(ctx context.Context) error {
	err := a.ask(ctx)
	switch {
	case err == nil:
		return errors.New("everything is allowed")
	case !strings.Contains(err.Error(), "orbidden"):
		return fmt.Errorf("another error: %w", err)
	default:
		return nil
	}
}

// ask is nil if nothing was refused.
func (a asker) ask(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var heard hearing
	client, err := apiclient.New(apiclient.Config{Kubeconfig: a.kubeconfig, NodeName: lab.NodeName}, zerolog.New(&heard))
	if err != nil {
		return err
	}
	running.Go(func() { client.Run(ctx, heard.facts) })
	pod, err := heard.pod(ctx, func(*corev1.Pod) bool { return true })
	if err != nil {
		return err
	}
	mark := fmt.Sprint(time.Now().UnixNano())
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/mark":%q}}}`, mark)
	if _, err := a.Client().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	if pod, err = heard.pod(ctx, func(p *corev1.Pod) bool { return p.Annotations["example.com/mark"] == mark }); err != nil {
		return err
	}
	_, listErr := client.LivePods(ctx)
	_, nodeErr := client.NodeUID(ctx)
	_, surroundingsErr := client.Surroundings(ctx)
	_, referencesErr := client.References(ctx, pod)
	client.Tell(apiclient.Event{Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Reason: "Asked", Message: mark})
	eventErr := heard.wait(ctx, "the event", func() bool {
		events, err := a.Client().CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Asked"})
		return err == nil && slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Message == mark })
	})
	return errors.Join(listErr, nodeErr, surroundingsErr, referencesErr, eventErr)
}

// hearing is what the client tells: of the pods, and in its log, where it says what it was refused.
type hearing struct {
	mu      sync.Mutex
	pods    []*corev1.Pod
	refused error
}

func (h *hearing) facts(f apiclient.Facts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pods = f.Pods
}

func (h *hearing) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes.Contains(line, []byte("orbidden")) {
		h.refused = errors.New(string(line))
	}
	return len(line), nil
}

// pod waits for the one pod to be as wanted.
func (h *hearing) pod(ctx context.Context, wanted func(*corev1.Pod) bool) (pod *corev1.Pod, err error) {
	err = h.wait(ctx, "the pod", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		i := slices.IndexFunc(h.pods, func(p *corev1.Pod) bool { return p.Name == "referring" && wanted(p) })
		if i >= 0 {
			pod = h.pods[i]
		}
		return i >= 0
	})
	return pod, err
}

// wait ends early, with an error, when something was refused.
func (h *hearing) wait(ctx context.Context, what string, done func() bool) error {
	refusal := func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.refused
	}
	err := lab.Wait(ctx, what, func(context.Context) error {
		if refusal() != nil || done() {
			return nil
		}
		return errors.New("not told so far")
	})
	return errors.Join(err, refusal())
}
