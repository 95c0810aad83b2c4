//go:build linux

// Package site is an edge site: a node with the checkpointer and two workloads, and a cluster that may be out of reach.
package site

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

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

	node lab.NodeOptions
}

// Start brings one up, with every checkpoint stored and the checkpointer's own active. It tells of each step that is
// done. What it returns is to be closed, also after an error.
func Start(ctx context.Context, node lab.NodeOptions, done func(what string)) (*Site, error) {
	s := &Site{node: node}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the cluster is up: etcd, API server, controller manager, scheduler", s.startCluster},
		{"the node is Ready: containerd, kubelet", s.startNode},
		{"the checkpointer's image is imported", func(ctx context.Context) error { return s.ImportCheckpointer(ctx) }},
		{"the DaemonSets web, gateway and pod-checkpointer are applied", s.apply},
		{"all three are ready", s.waitReady},
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
	s.Node, err = lab.StartNode(ctx, s.Cluster, s.node)
	return err
}

func (s *Site) apply(ctx context.Context) error {
	if _, err := s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/site=edge"); err != nil {
		return err
	}
	return errors.Join(s.Apply(ctx, workloads), s.ApplyKustomize(ctx, "../deploy/base"))
}

func (s *Site) waitReady(ctx context.Context) error {
	for _, name := range []string{"web", "gateway", "pod-checkpointer"} {
		if err := s.WaitDaemonSet(ctx, Namespace, name); err != nil {
			return err
		}
	}
	for selector, name := range map[string]*string{"app=web": &s.Web, "app=gateway": &s.Gateway, "app.kubernetes.io/name=pod-checkpointer": &s.Self} {
		pods, err := s.PodsOf(ctx, Namespace, selector)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			// A mirror pod has the labels of its parent.
			if pod.Annotations["kubernetes.io/config.mirror"] == "" {
				*name = pod.Name
			}
		}
	}
	return nil
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
