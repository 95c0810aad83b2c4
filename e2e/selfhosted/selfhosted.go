//go:build linux

// Package selfhosted is a cluster whose control plane runs in pods of the one node that it controls, all of them with
// checkpoints: API server, controller manager, scheduler and CoreDNS. Only etcd is elsewhere.
package selfhosted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// Component is one part of the control plane: a DaemonSet or a Deployment in kube-system.
type Component string

// The components. Programs and images have the same names.
const (
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	CoreDNS           Component = "coredns"
	Checkpointer      Component = "pod-checkpointer"
)

// Components are all of them.
var Components = []Component{APIServer, ControllerManager, Scheduler, CoreDNS, Checkpointer}

// label selects the component's pods and those of its checkpoints.
func (c Component) label() string {
	if c == Checkpointer {
		return "app.kubernetes.io/name"
	}
	return "app"
}

// ControlPlane is a running one.
type ControlPlane struct {
	*lab.Cluster
	*lab.Node

	Shape Shape // what was applied last

	node lab.NodeOptions
}

// Start brings one up as an installer does: a bootstrap control plane at another address starts the real one in pods and
// is thrown away. Every component then has a checkpoint. It tells of each step that is done. What it returns is to be
// closed, also after an error.
func Start(ctx context.Context, node lab.NodeOptions, done func(what string)) (*ControlPlane, error) {
	p := &ControlPlane{node: node, Shape: Shape{PortSharing: true}}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the bootstrap control plane is up, elsewhere", p.startCluster},
		{"the node is Ready", p.startNode},
		{"the images are there", p.importImages},
		{"API server, controller manager, scheduler, CoreDNS and checkpointer are applied", p.applyAll},
		{"all pods are Ready", p.WaitReady},
		{"each has a stored checkpoint", p.WaitStored},
		{"the bootstrap control plane is thrown away", p.pivot},
		{"the API answers from the node", p.WaitAnswers},
		{"the cluster has settled", p.WaitSettled},
	} {
		if err := step.do(ctx); err != nil {
			return p, fmt.Errorf("%s: %w", step.what, err)
		}
		done(step.what)
	}
	return p, nil
}

// Close ends everything that was started.
func (p *ControlPlane) Close(ctx context.Context) (err error) {
	if p.Node != nil {
		err = p.Node.Close(ctx)
	}
	if p.Cluster != nil {
		err = errors.Join(err, p.Cluster.Close(ctx))
	}
	return err
}

func (p *ControlPlane) startCluster(ctx context.Context) (err error) {
	p.Cluster, err = lab.StartCluster(ctx, lab.ClusterOptions{LeaderElection: true})
	return err
}

func (p *ControlPlane) startNode(ctx context.Context) (err error) {
	p.Node, err = lab.StartNode(ctx, p.Cluster, p.node)
	return err
}

func (p *ControlPlane) importImages(ctx context.Context) error {
	for _, c := range []Component{APIServer, ControllerManager, Scheduler, CoreDNS} {
		if err := p.ImportProgram(ctx, string(c)); err != nil {
			return err
		}
	}
	return p.ImportCheckpointer(ctx)
}

func (p *ControlPlane) applyAll(ctx context.Context) error {
	if _, err := p.Kubectl(ctx, "label", "node", lab.NodeName, "node-role.kubernetes.io/control-plane="); err != nil {
		return err
	}
	for name, files := range secrets {
		if err := p.makeSecret(ctx, name, files); err != nil {
			return err
		}
	}
	others, err := p.render("control-plane.yaml")
	if err != nil {
		return err
	}
	return errors.Join(p.Apply(ctx, others), p.ApplyAPIServer(ctx, p.Shape), p.ApplyKustomize(ctx, "../deploy/base"))
}

// secrets maps the name of each Secret to the files of the cluster's PKI in it.
var secrets = map[string][]string{
	"kube-apiserver": {
		"ca.crt", "apiserver.crt", "apiserver.key", "apiserver-kubelet-client.crt", "apiserver-kubelet-client.key", "sa.pub", "sa.key",
	},
	"kube-controller-manager": {"ca.crt", "ca.key", "sa.key"},
}

func (p *ControlPlane) makeSecret(ctx context.Context, name string, files []string) error {
	data := map[string][]byte{}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(p.PKI(), file))
		if err != nil {
			return err
		}
		data[file] = content
	}
	_, err := p.Client().CoreV1().Secrets(site.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data,
	}, metav1.CreateOptions{})
	return err
}

// pivot ends the bootstrap control plane, whose address the node's API server then has.
func (p *ControlPlane) pivot(ctx context.Context) error {
	return errors.Join(p.Cluster.Scheduler.Stop(ctx), p.Cluster.ControllerManager.Stop(ctx), p.Cluster.APIServer.Stop(ctx), p.MoveAPIToNode())
}

// PowerCut cuts the power of the node and of etcd: nothing is left but disks.
func (p *ControlPlane) PowerCut(ctx context.Context) error {
	return errors.Join(p.Node.PowerCut(ctx), p.Etcd.Kill(ctx))
}

// PowerOn turns on what PowerCut has cut.
func (p *ControlPlane) PowerOn(ctx context.Context) error {
	return errors.Join(p.Etcd.Start(ctx), p.Node.PowerOn(ctx))
}

// Parents are the names of the real pods of a component: those of the API server that aren't being deleted.
func (p *ControlPlane) Parents(ctx context.Context, c Component) ([]corev1.Pod, error) {
	pods, err := p.PodsOf(ctx, site.Namespace, c.label()+"="+string(c))
	// A mirror pod has the labels of its parent.
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Annotations[corev1.MirrorPodAnnotationKey] != "" }), err
}

// Names are the names of the pods, sorted.
func Names(pods []corev1.Pod) []string {
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
