//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
)

// Cluster is everything that isn't on the node. It runs in a network of its own,
// at the other end of a cable, and a power cut of the node doesn't touch it.
type Cluster struct {
	Etcd, APIServer, ControllerManager, Scheduler *Component

	machine machine
	ca      *pki.Authority
	client  kubernetes.Interface

	apiOnNode bool // the node has APIAddress
}

// ClusterOptions change what StartCluster starts.
type ClusterOptions struct {
	// APIServerArgs come after our own, so they override them.
	APIServerArgs []string
	// LeaderElection lets the controller manager and the scheduler stand by for others of the cluster, for example in
	// pods.
	LeaderElection bool
}

// StartCluster starts etcd, the API server, the controller manager and the
// scheduler, and returns when all are healthy.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	c := &Cluster{machine: here}
	if err := c.writeCredentials(); err != nil {
		return nil, fmt.Errorf("cluster credentials: %w", err)
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	c.Etcd = c.component("etcd", httpOK("http://"+ClusterAddress+":2379/health"), c.etcdArgs())
	c.APIServer = c.component("kube-apiserver", c.APIReady, append(c.APIServerArgs(c.PKI()), o.APIServerArgs...))
	election := fmt.Sprintf("--leader-elect=%t", o.LeaderElection)
	c.ControllerManager = c.component("kube-controller-manager", httpOK("https://"+ClusterAddress+":10257/healthz"),
		append(ControllerManagerArgs(c.PKI()), "--kubeconfig="+c.machine.elsewhere("controller-manager.conf"), election))
	c.Scheduler = c.component("kube-scheduler", httpOK("https://"+ClusterAddress+":10259/healthz"),
		[]string{"--kubeconfig=" + c.machine.elsewhere("scheduler.conf"), election})
	if err := c.Start(ctx); err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// connect makes the admin's client.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		return err
	}
	// Tests poll and watch; a throttled client would measure itself.
	config.QPS = -1
	c.client, err = kubernetes.NewForConfig(config)
	return err
}

// Start starts the components that don't run, in order.
func (c *Cluster) Start(ctx context.Context) error {
	for _, component := range []*Component{c.Etcd, c.APIServer, c.ControllerManager, c.Scheduler} {
		if component.Running() {
			continue
		}
		if err := component.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close kills the components, removes their data and takes the API server's
// addresses back, so that another cluster can be started.
func (c *Cluster) Close(ctx context.Context) error {
	for _, component := range []*Component{c.Scheduler, c.ControllerManager, c.APIServer, c.Etcd} {
		if !component.Running() {
			continue
		}
		if err := component.Kill(ctx); err != nil {
			return err
		}
	}
	if err := c.MoveAPIToCluster(); err != nil {
		return err
	}
	return os.RemoveAll(c.machine.elsewhere("etcd"))
}

// Client is the admin's clientset.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// APIReady asks the API server once, wherever it runs, whether it is ready.
func (c *Cluster) APIReady(ctx context.Context) error {
	return httpOK("https://" + AdminAddress + ":" + apiPort + "/readyz")(ctx)
}

// PKI is the directory of the cluster's certificates and keys, named as in
// kubeadm's /etc/kubernetes/pki.
func (c *Cluster) PKI() string { return c.machine.elsewhere("pki") }

// Issue signs a certificate by the cluster's authority.
func (c *Cluster) Issue(s pki.Subject) (pki.Pair, error) { return c.ca.Issue(s) }

func (c *Cluster) component(name string, ready func(context.Context) error, args []string) *Component {
	return &Component{
		name:  name,
		args:  c.machine.inCluster(append([]string{binaries.Path(name)}, args...)...),
		ready: ready,
	}
}

// APIServerArgs are the arguments of an API server of this cluster, also of one
// in a pod with host network that has the files of PKI in the directory.
func (c *Cluster) APIServerArgs(pki string) []string {
	pki += "/"
	return []string{
		"--bind-address=0.0.0.0",
		"--secure-port=" + apiPort,
		"--advertise-address=" + APIAddress,
		// Else SIGTERM takes 60 s, as long as somebody watches.
		"--shutdown-send-retry-after=true",
		"--etcd-servers=http://" + ClusterAddress + ":2379",
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + pki + "ca.crt",
		"--tls-cert-file=" + pki + "apiserver.crt",
		"--tls-private-key-file=" + pki + "apiserver.key",
		"--kubelet-certificate-authority=" + pki + "ca.crt",
		"--kubelet-client-certificate=" + pki + "apiserver-kubelet-client.crt",
		"--kubelet-client-key=" + pki + "apiserver-kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki + "sa.pub",
		"--service-account-signing-key-file=" + pki + "sa.key",
	}
}

func (c *Cluster) etcdArgs() []string {
	client, peer := "http://"+ClusterAddress+":2379", "http://"+ClusterAddress+":2380"
	return []string{
		"--name=etcd",
		"--data-dir=" + c.machine.elsewhere("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=etcd=" + peer,
		// The machine's disk is shared, and a run's data dies with the run.
		"--unsafe-no-fsync",
	}
}

// ControllerManagerArgs are the arguments of a controller manager, without
// credentials and leader election, that has the files of PKI in the directory.
func ControllerManagerArgs(pki string) []string {
	pki += "/"
	return []string{
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + pki + "sa.key",
		"--root-ca-file=" + pki + "ca.crt",
		"--cluster-signing-cert-file=" + pki + "ca.crt",
		"--cluster-signing-key-file=" + pki + "ca.key",
	}
}
