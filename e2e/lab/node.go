//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
)

// The stock paths of a node.
const (
	Manifests         = "/etc/kubernetes/manifests"
	KubeletDir        = "/var/lib/kubelet"
	KubeletKubeconfig = "/etc/kubernetes/kubelet.conf"
	ContainerdSocket  = "/run/containerd/containerd.sock"

	kubeletConfig    = KubeletDir + "/config.yaml"
	kubeletPKI       = KubeletDir + "/pki"
	containerdConfig = "/etc/containerd/config.toml"
	cniConfigs       = "/etc/cni/net.d"
)

// Node is the machine as a node of the cluster, on the stock paths.
type Node struct {
	Containerd, Kubelet *Component

	machine machine
	cluster *Cluster

	blackHole bool // see BlackHole
}

// NodeOptions change what StartNode starts.
type NodeOptions struct {
	// KubeletConfig overrides top-level fields of the KubeletConfiguration.
	KubeletConfig map[string]any
	// KubeletArgs are further flags.
	KubeletArgs []string
}

// StartNode configures the machine, starts containerd and the kubelet, imports
// the pause and witness images, and returns when the API says that the node is
// Ready.
func StartNode(ctx context.Context, c *Cluster, o NodeOptions) (*Node, error) {
	n := &Node{machine: here, cluster: c}
	n.Containerd = &Component{
		name:  "containerd",
		args:  []string{binaries.Path("containerd"), "--config=" + containerdConfig},
		ready: n.containerdReady,
	}
	n.Kubelet = &Component{
		name: "kubelet",
		args: append([]string{
			binaries.Path("kubelet"),
			"--config=" + kubeletConfig,
			"--kubeconfig=" + KubeletKubeconfig,
			"--node-ip=" + n.machine.address(),
		}, o.KubeletArgs...),
		ready: httpOK("http://127.0.0.1:10248/healthz"),
	}
	if err := n.firstStart(ctx, o); err != nil {
		return nil, errors.Join(err, n.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Node) firstStart(ctx context.Context, o NodeOptions) error {
	if err := n.configure(o); err != nil {
		return fmt.Errorf("configure the node: %w", err)
	}
	if err := n.Containerd.Start(ctx); err != nil {
		return err
	}
	if err := n.importLabImages(ctx); err != nil {
		return err
	}
	if err := n.Kubelet.Start(ctx); err != nil {
		return err
	}
	return n.waitFirstReady(ctx)
}

func (n *Node) configure(o NodeOptions) error {
	if err := makeDirs(Manifests, cniConfigs, kubeletPKI, filepath.Dir(containerdConfig)); err != nil {
		return err
	}
	if err := os.WriteFile(containerdConfig, []byte(containerdConfiguration()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cniConfigs, "10-ptp.conflist"), []byte(n.machine.cniConfiguration()), 0o644); err != nil {
		return err
	}
	config := n.kubeletConfiguration()
	maps.Copy(config, o.KubeletConfig)
	if err := writeYAML(kubeletConfig, config); err != nil {
		return err
	}
	return n.writeCredentials()
}

// writeCredentials leaves what kubeadm leaves on a worker: the kubeconfig names
// a file that the kubelet replaces when it rotates its certificate.
func (n *Node) writeCredentials() error {
	authority, err := n.cluster.ca.Pair()
	if err != nil {
		return err
	}
	if err := makeDirs("/etc/kubernetes/pki"); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/kubernetes/pki/ca.crt", authority.Certificate, 0o644); err != nil {
		return err
	}
	subject := n.machine.subject()
	serving, err := n.cluster.Issue(pki.Subject{
		Name: subject.Name, Organizations: subject.Organizations,
		Addresses: []string{n.machine.address(), n.machine.name()},
	})
	if err != nil {
		return err
	}
	if err := serving.WriteTo(kubeletPKI, "kubelet"); err != nil {
		return err
	}
	client, err := n.cluster.Issue(subject)
	if err != nil {
		return err
	}
	if err := n.SetClientCertificate(client); err != nil {
		return err
	}
	current := kubeletPKI + "/kubelet-client-current.pem"
	return n.cluster.writeKubeconfig(KubeletKubeconfig, APIAddress, subject.Name, map[string]any{
		"client-certificate": current,
		"client-key":         current,
	})
}

// NodeSubject is the node's identity towards the API server.
func NodeSubject() pki.Subject { return here.subject() }

func (m machine) subject() pki.Subject {
	return pki.Subject{Name: "system:node:" + m.name(), Organizations: []string{"system:nodes"}}
}

// SetClientCertificate replaces the node's client certificate in the way that a
// rotation does: a new file, then the link to it.
func (n *Node) SetClientCertificate(p pki.Pair) error {
	f, err := os.CreateTemp(kubeletPKI, "kubelet-client-*.pem")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(p.Joined()); err != nil {
		return err
	}
	link := kubeletPKI + "/kubelet-client-next.pem"
	if err := os.Symlink(f.Name(), link); err != nil {
		return err
	}
	return os.Rename(link, kubeletPKI+"/kubelet-client-current.pem")
}
