//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"strings"
)

// The node and the rest of the cluster are two network namespaces with a cable
// between them.
const (
	// NodeAddress is the node's.
	NodeAddress = "10.77.0.2"
	// ClusterAddress is where etcd and the controllers are.
	ClusterAddress = "10.77.0.1"
	// APIAddress is how the node, its pods and the controllers reach the API
	// server. It moves with the API server; see Cluster.MoveAPI.
	APIAddress = "10.77.0.10"
	// AdminAddress is how tests reach the API server. It moves too, but
	// BlackHole doesn't concern it.
	AdminAddress = "10.77.0.11"
	// ServiceAddress is that of the Service kubernetes; there's no kube-proxy.
	ServiceAddress = "10.96.0.1"

	serviceCIDR = "10.96.0.0/16"
	podCIDR     = "10.78.0.0/24"
	apiPort     = "6443"
)

const (
	nodeDevice    = "eth0"
	clusterDevice = "uplink"
)

// elsewhere is where the cluster's components keep what they have; the node
// doesn't look there.
func (m machine) elsewhere(path ...string) string {
	return filepath.Join(append([]string{m.run.Dir, "elsewhere"}, path...)...)
}

func (m machine) netns() string { return m.elsewhere("netns") }

// inCluster is the command line that runs args in the cluster's network.
func (m machine) inCluster(args ...string) []string {
	return append([]string{"nsenter", "--net=" + m.netns()}, args...)
}

func (m machine) network() error {
	if err := makeDirs(m.elsewhere()); err != nil {
		return err
	}
	if err := os.WriteFile(m.netns(), nil, 0o644); err != nil {
		return err
	}
	dnat := " -d " + ServiceAddress + " -p tcp --dport 443 -j DNAT --to-destination " + APIAddress + ":" + apiPort
	if err := each(
		command,
		"unshare --net="+m.netns()+" true",
		"ip link set lo up",
		"ip link add "+nodeDevice+" type veth peer name "+clusterDevice,
		"ip link set "+clusterDevice+" netns "+m.netns(),
		"ip addr add "+NodeAddress+"/24 dev "+nodeDevice,
		"ip link set "+nodeDevice+" up",
		"ip route add default via "+ClusterAddress,
		"iptables -t nat -A PREROUTING"+dnat,
		"iptables -t nat -A OUTPUT"+dnat,
	); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	return each(
		m.clusterCommand,
		"ip link set lo up",
		"ip addr add "+ClusterAddress+"/24 dev "+clusterDevice,
		"ip link set "+clusterDevice+" up",
		"ip route add "+podCIDR+" via "+NodeAddress,
		"ip addr add "+APIAddress+"/32 dev "+clusterDevice,
		"ip addr add "+AdminAddress+"/32 dev "+clusterDevice,
	)
}

func (m machine) clusterCommand(name string, args ...string) error {
	line := m.inCluster(append([]string{name}, args...)...)
	return command(line[0], line[1:]...)
}

// runner runs a command line somewhere.
type runner func(name string, args ...string) error

// each runs command lines without quotes until one fails.
func each(run runner, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		if err := run(words[0], words[1:]...); err != nil {
			return err
		}
	}
	return nil
}
