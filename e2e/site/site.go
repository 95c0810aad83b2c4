//go:build linux

// Package site is an edge site: a node with the checkpointer and two workloads, and a cluster that may be out of reach.
package site

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

//go:embed workloads.yaml
var workloads []byte

// Namespace is where everything runs: the checkpointer's own, which is the one that it watches by default.
const Namespace = "kube-system"

// GatewayAddress is where gateway, which has the host's network, answers.
const GatewayAddress = lab.NodeAddress + ":7001"

const annotationCheckpointOf = "checkpointer.alpha.coreos.com/checkpoint-of"

// Site is a running one.
type Site struct {
	*lab.Cluster
	*lab.Node
	Web, Gateway, Self string // names of the pods: on the pod network, on the host's, the checkpointer's own

	options Options
}

// Options change what Start does.
type Options struct {
	Node lab.NodeOptions
	// Before is done when the workloads run and the checkpointer is about to come.
	Before func(context.Context, *Site) error
	// Kustomization is the checkpointer's, deploy/base by default.
	Kustomization string
}

// Start brings one up, with every checkpoint stored and the checkpointer's own active. It tells of each step that is
// done. What it returns is to be closed, also after an error.
func Start(ctx context.Context, o Options, done func(what string)) (*Site, error) {
	s := &Site{options: o}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the cluster is up: etcd, API server, controller manager, scheduler", s.startCluster},
		{"the node is Ready: containerd, kubelet", s.startNode},
		{"the checkpointer's image is imported", func(ctx context.Context) error { return s.ImportCheckpointer(ctx) }},
		{"the DaemonSets web and gateway are ready", s.applyWorkloads},
		{"the DaemonSet pod-checkpointer is ready", s.applyCheckpointer},
		{"the checkpointer has stored a checkpoint of each", s.waitStored},
		{"the checkpointer's own checkpoint stands by", s.waitStandby},
	} {
		if err := step.do(ctx); err != nil {
			return s, fmt.Errorf("%s: %w", step.what, err)
		}
		done(step.what)
	}
	return s, nil
}

// Close ends everything that was started.
func (s *Site) Close(ctx context.Context) (err error) {
	if s.Node != nil {
		err = s.Node.Close(ctx)
	}
	if s.Cluster != nil {
		err = errors.Join(err, s.Cluster.Close(ctx))
	}
	return err
}

func (s *Site) startCluster(ctx context.Context) (err error) {
	s.Cluster, err = lab.StartCluster(ctx, lab.ClusterOptions{})
	return err
}

func (s *Site) startNode(ctx context.Context) (err error) {
	s.Node, err = lab.StartNode(ctx, s.Cluster, s.options.Node)
	return err
}

func (s *Site) applyWorkloads(ctx context.Context) (err error) {
	if _, err := s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/site=edge"); err != nil {
		return err
	}
	if err := s.Apply(ctx, workloads); err != nil {
		return err
	}
	if s.Web, err = s.readyPod(ctx, "web", "app=web"); err != nil {
		return err
	}
	s.Gateway, err = s.readyPod(ctx, "gateway", "app=gateway")
	return err
}

func (s *Site) applyCheckpointer(ctx context.Context) (err error) {
	if s.options.Before != nil {
		if err := s.options.Before(ctx, s); err != nil {
			return err
		}
	}
	if err := s.ApplyKustomize(ctx, cmp.Or(s.options.Kustomization, "../deploy/base")); err != nil {
		return err
	}
	s.Self, err = s.readyPod(ctx, "pod-checkpointer", "app.kubernetes.io/name=pod-checkpointer")
	return err
}

// readyPod waits until a DaemonSet is ready and is the name of its pod.
func (s *Site) readyPod(ctx context.Context, daemonSet, selector string) (name string, err error) {
	if err := s.WaitDaemonSet(ctx, Namespace, daemonSet); err != nil {
		return "", err
	}
	pods, err := s.PodsOf(ctx, Namespace, selector)
	for _, pod := range pods {
		// A mirror pod has the labels of its parent.
		if pod.Annotations[corev1.MirrorPodAnnotationKey] == "" {
			name = pod.Name
		}
	}
	return name, err
}

func (s *Site) waitStored(ctx context.Context) error {
	return Soon(ctx, "stored checkpoints", func(context.Context) error {
		return errors.Join(Exists(Stored(s.Web)), Exists(Stored(s.Gateway)), Exists(Stored(s.Self)), Exists(Active(s.Self)))
	})
}

func (s *Site) waitStandby(ctx context.Context) error {
	return Soon(ctx, "the static copy", func(ctx context.Context) error {
		_, err := s.RunningContainer(ctx, Namespace, Static(s.Self), "checkpointer")
		return err
	}, s.Kubelet)
}

// WebTestimony asks the witness of web, under the name of the pod that it runs in.
func (s *Site) WebTestimony(ctx context.Context, pod string) (testimony witness.Testimony, err error) {
	err = Soon(ctx, "web as "+pod, func(ctx context.Context) error {
		ip, err := s.PodIP(ctx, Namespace, pod)
		if err != nil {
			return err
		}
		testimony, err = lab.Testimony(ctx, ip+":8080", "/etc/settings", "/etc/single", "/etc/keys", "/var/run/secrets/kubernetes.io/serviceaccount")
		return err
	}, s.Kubelet)
	return testimony, err
}

// GatewayTestimony asks the witness of gateway.
func (s *Site) GatewayTestimony(ctx context.Context) (witness.Testimony, error) {
	return lab.WaitTestimony(ctx, GatewayAddress, "/etc/settings", "/etc/keys", "/var/run/secrets/kubernetes.io/serviceaccount")
}

// RunningCheckpoints are the names of the parents whose checkpoint has a READY sandbox.
func (s *Site) RunningCheckpoints(ctx context.Context) (names []string, err error) {
	sandboxes, err := s.Sandboxes(ctx)
	for _, b := range sandboxes {
		if of := b.Annotations[annotationCheckpointOf]; of != "" && b.State == runtime.PodSandboxState_SANDBOX_READY {
			names = append(names, of)
		}
	}
	slices.Sort(names)
	return names, err
}
