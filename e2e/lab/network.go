//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The node and the rest of the cluster are two network namespaces with a cable
// between them.
const (
	// NodeAddress is the node's.
	NodeAddress = "10.77.0.2"
	// NeighbourAddress is that of the second machine, which has a cable of its own.
	NeighbourAddress = "10.77.1.2"
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
	apiPort     = "6443"
)

const (
	nodeDevice    = "eth0"
	clusterDevice = "uplink-1"
)

// subnet is that of the machine's cable.
func (m machine) subnet() string { return fmt.Sprintf("10.77.%d.", m.number-1) }

// address is NodeAddress or NeighbourAddress.
func (m machine) address() string { return m.subnet() + "2" }

// podCIDR has the addresses of the machine's pods.
func (m machine) podCIDR() string { return fmt.Sprintf("10.78.%d.0/24", m.number-1) }

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

// clusterNetwork joins the machines' cables.
func (m machine) clusterNetwork() error {
	if err := makeDirs(m.elsewhere()); err != nil {
		return err
	}
	if err := os.WriteFile(m.netns(), nil, 0o644); err != nil {
		return err
	}
	if err := command("unshare", "--net="+m.netns(), "true"); err != nil {
		return err
	}
	if err := m.clusterCommand("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"); err != nil {
		return err
	}
	return each(m.clusterCommand, "ip link set lo up")
}

// network is the machine's cable, and what it needs at both ends.
func (m machine) network() error {
	uplink := fmt.Sprintf("uplink-%d", m.number)
	gateway := m.subnet() + "1"
	dnat := " -d " + ServiceAddress + " -p tcp --dport 443 -j DNAT --to-destination " + APIAddress + ":" + apiPort
	if err := each(
		command,
		"ip link set lo up",
		"ip link add "+nodeDevice+" type veth peer name "+uplink,
		"ip link set "+uplink+" netns "+m.netns(),
		"ip addr add "+m.address()+"/24 dev "+nodeDevice,
		"ip link set "+nodeDevice+" up",
		"ip route add default via "+gateway,
		"iptables -t nat -A PREROUTING"+dnat,
		"iptables -t nat -A OUTPUT"+dnat,
	); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	if err := each(
		m.clusterCommand,
		"ip addr add "+gateway+"/24 dev "+uplink,
		"ip link set "+uplink+" up",
		"ip route add "+m.podCIDR()+" via "+m.address(),
	); err != nil || m.number > 1 {
		return err
	}
	return each(
		m.clusterCommand,
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
