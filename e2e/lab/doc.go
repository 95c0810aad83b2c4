// Package lab is a real Kubernetes node on one machine: etcd, API server,
// controller manager and scheduler, and a kubelet with containerd on the stock
// paths. It needs root on Linux, the Go toolchain, and a few Debian packages
// (it says which); no container engine and no registry.
//
//	func TestMain(m *testing.M) { lab.Main(m, lab.BuildCheckpointer) }
//
//	func TestX(t *testing.T) {
//		cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
//		node, err := lab.StartNode(ctx, cluster, lab.NodeOptions{})
//		err = node.ImportCheckpointer(ctx)
//		err = cluster.ApplyKustomize(ctx, "../deploy/base")
//		err = cluster.WaitDaemonSet(ctx, "kube-system", "pod-checkpointer")
//
//		err = cluster.APIServer.Stop(ctx)
//		err = node.PowerCut(ctx)
//		err = node.PowerOn(ctx)
//		_, err = node.RunningContainer(ctx, "kube-system", "a-pod-"+lab.NodeName, "main")
//		t, err := lab.WaitTestimony(ctx, lab.NodeAddress+":8080", "/etc/secret")
//
//		err = node.BlackHole()                          // or lose packets only,
//		err = cluster.APIServer.Pause()                 // or hang the server,
//		err = node.Kubelet.Kill(ctx)                    // or the kubelet
//
//		err = node.Close(ctx)     // before another test starts its own; at the
//		err = cluster.Close(ctx)  // end of the process all ends anyway
//	}
//
// A plain program calls [Enter] first in main, instead of [Main]; see cmd/lab,
// which runs a shell on a Ready node. For an API server in a pod of the node see
// [Node.ImportProgram], [Cluster.APIServerArgs] and [Cluster.MoveAPIToNode].
//
// Both run the program again in namespaces of its own (package isolate). There,
// /etc and /var/lib are overlays, /run and /var/log are empty, the host name is
// [NodeName], and the network is a cable between the node ([NodeAddress]) and
// the rest of the cluster ([ClusterAddress]). The internet isn't there: what
// needs it goes into a [Prepare]. One cluster and one node at a time, and for a
// second one [StartNeighbour].
//
// Every wait takes a context; give it a deadline. Its error says what was waited
// for and how the logs end. After a failure all logs are copied to
// $LAB_ARTIFACTS, or to a directory whose name is printed.
//
// A run's state lives in $TMPDIR, which must not be an overlay filesystem.
package lab
