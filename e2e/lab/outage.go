//go:build linux

package lab

// BlackHole drops every packet between the node with its pods and APIAddress,
// in both directions and without a word, as a broken link does. Connections
// stay open until somebody's patience ends. AdminAddress isn't concerned.
func (n *Node) BlackHole() error {
	if n.blackHole {
		return nil
	}
	n.blackHole = true
	return dropAPI("-I")
}

// EndBlackHole lets the packets pass again.
func (n *Node) EndBlackHole() error {
	if !n.blackHole {
		return nil
	}
	n.blackHole = false
	return dropAPI("-D")
}

func dropAPI(action string) error {
	return each(
		command,
		"iptables "+action+" OUTPUT -d "+APIAddress+" -j DROP",
		"iptables "+action+" INPUT -s "+APIAddress+" -j DROP",
		"iptables "+action+" FORWARD -d "+APIAddress+" -j DROP",
		"iptables "+action+" FORWARD -s "+APIAddress+" -j DROP",
	)
}

// MoveAPIToNode gives APIAddress and AdminAddress to the node, for an API
// server that runs in a pod there.
func (c *Cluster) MoveAPIToNode() error {
	if c.apiOnNode {
		return nil
	}
	c.apiOnNode = true
	return moveAPI(c.machine.clusterCommand, clusterDevice, command, nodeDevice)
}

// MoveAPIToCluster undoes MoveAPIToNode.
func (c *Cluster) MoveAPIToCluster() error {
	if !c.apiOnNode {
		return nil
	}
	c.apiOnNode = false
	return moveAPI(command, nodeDevice, c.machine.clusterCommand, clusterDevice)
}

// moveAPI also makes both sides forget who had the addresses.
func moveAPI(from runner, fromDevice string, to runner, toDevice string) error {
	for _, address := range []string{APIAddress, AdminAddress} {
		if err := each(
			from,
			"ip addr del "+address+"/32 dev "+fromDevice,
			"ip neigh flush to "+address,
		); err != nil {
			return err
		}
		if err := each(
			to,
			"ip neigh flush to "+address,
			"ip addr add "+address+"/32 dev "+toDevice,
		); err != nil {
			return err
		}
	}
	return nil
}
