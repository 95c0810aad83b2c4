//go:build linux

package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
)

// Apply applies manifests, server-side, as the admin.
func (c *Cluster) Apply(ctx context.Context, yaml []byte) error {
	_, err := c.kubectl(ctx, yaml, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// ApplyKustomize applies a kustomization directory of the source tree.
func (c *Cluster) ApplyKustomize(ctx context.Context, dir string) error {
	_, err := c.kubectl(ctx, nil, "apply", "--server-side", "--force-conflicts", "-k", dir)
	return err
}

// Kubectl runs kubectl as the admin and returns what it prints to stdout.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, nil, args...)
}

func (c *Cluster) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binaries.Path("kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.AdminKubeconfig(), "KUBECACHEDIR="+c.machine.elsewhere("kubectl"))
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %q: %w\n%s", args, err, &stderr)
	}
	return stdout.String(), nil
}

// WaitReady waits until the API has heard from the kubelet's present life that
// the node is Ready: one that was cut off stays Ready for a while.
func (n *Node) WaitReady(ctx context.Context) error {
	return Wait(ctx, "node "+n.machine.name()+" to be Ready again", func(ctx context.Context) error {
		lease, err := n.cluster.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.machine.name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		started := n.Kubelet.StartedAt()
		if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(started) {
			return fmt.Errorf("the kubelet hasn't renewed its lease")
		}
		return n.reportedReady(ctx, started)
	}, n.Kubelet, n.Containerd)
}

// waitFirstReady is WaitReady for a new node, whose lease comes 10 s late.
func (n *Node) waitFirstReady(ctx context.Context) error {
	return Wait(ctx, "node "+n.machine.name()+" to be Ready", func(ctx context.Context) error {
		return n.reportedReady(ctx, n.Kubelet.StartedAt())
	}, n.Kubelet, n.Containerd)
}

// reportedReady is nil if the node says that it's Ready, and said so no earlier
// than since. Reports carry whole seconds.
func (n *Node) reportedReady(ctx context.Context, since time.Time) error {
	node, err := n.cluster.client.CoreV1().Nodes().Get(ctx, n.machine.name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status != corev1.ConditionTrue:
			return fmt.Errorf("Ready is %s: %s", c.Status, c.Message)
		case c.LastHeartbeatTime.Unix() < since.Unix():
			return fmt.Errorf("the last report is older than the kubelet")
		default:
			return nil
		}
	}
	return fmt.Errorf("no condition Ready")
}

// WaitDaemonSet waits until the current revision of a DaemonSet is ready on
// every node that it wants.
func (c *Cluster) WaitDaemonSet(ctx context.Context, namespace, name string) error {
	return Wait(ctx, fmt.Sprintf("DaemonSet %s/%s to be ready", namespace, name), func(ctx context.Context) error {
		d, err := c.client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.DesiredNumberScheduled == 0 ||
			s.UpdatedNumberScheduled < s.DesiredNumberScheduled || s.NumberReady < s.DesiredNumberScheduled {
			return fmt.Errorf("%d of %d ready, %d up to date", s.NumberReady, s.DesiredNumberScheduled, s.UpdatedNumberScheduled)
		}
		return nil
	}, c.APIServer, c.ControllerManager)
}

// PodsOf are the node's pods with the label, that aren't being deleted.
func (c *Cluster) PodsOf(ctx context.Context, namespace, labelSelector string) ([]corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labelSelector, FieldSelector: "spec.nodeName=" + NodeName,
	})
	if err != nil {
		return nil, err
	}
	var living []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			living = append(living, p)
		}
	}
	return living, nil
}
