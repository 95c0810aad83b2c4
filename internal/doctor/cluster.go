package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// clusterKinds are about what belongs together.
var clusterKinds = []Kind{
	{
		Name: "api-server-alone", Severity: Error,
		Means:  "the API server would come back without a scheduler or a controller manager: pods that were rejected or deleted are never replaced",
		Remedy: "annotate them, too, or run them as static pods on this node, or on one that is up by itself",
		find: func(f *Facts) []string {
			if !f.declares("kube-apiserver", false) {
				return nil
			}
			var missing []string
			for _, program := range []string{"kube-scheduler", "kube-controller-manager"} {
				if !f.declares(program, true) {
					missing = append(missing, program)
				}
			}
			return one(len(missing) > 0, "kube-apiserver has a checkpoint, and not "+strings.Join(missing, ", "))
		},
	},
	{
		Name: "no-network-agent", Severity: Error,
		Means:  "the node's network plugin needs an agent in a pod, and no such pod has a checkpoint: pods with a network of their own would not start",
		Remedy: "annotate the pods of the network's DaemonSet (Cilium, Calico, Flannel ...)",
		find: func(f *Facts) []string {
			return one(len(f.needNetwork()) > 0 && len(f.specialPlugins()) > 0 && !f.hasNetworkAgent(),
				fmt.Sprintf("plugin %s; pods: %s", strings.Join(f.specialPlugins(), ", "), strings.Join(f.needNetwork(), ", ")))
		},
	},
	{
		Name: "network-agent-unknown", Severity: Warning,
		Means:  "the container runtime does not tell which network plugins it uses: if they need an agent in a pod, pods with a network of their own would not start",
		Remedy: "if the network has a DaemonSet (Cilium, Calico, Flannel ...), annotate its pods",
		find: func(f *Facts) []string {
			return one(f.RuntimeErr == nil && len(f.needNetwork()) > 0 && f.Runtime.Plugins == nil && !f.hasNetworkAgent(), strings.Join(f.needNetwork(), ", "))
		},
	},
	{
		Name: "node-identity", Severity: Warning,
		Means:  "this node is not the one that the checkpoints were made on, by the API server or by its name: all are started, and none is removed",
		Remedy: "if the node has joined the same cluster anew, or has a new name, remove state.json beside the stored manifests",
		find: func(f *Facts) []string {
			if f.NodeErr != nil && len(f.Checkpoints) > 0 {
				return said(f.NodeErr)
			}
			return one(f.RecordedUID != "" && f.NodeUID != "" && f.RecordedUID != f.NodeUID,
				fmt.Sprintf("recorded is the Node UID %s, and the API server has %s", f.RecordedUID, f.NodeUID))
		},
	},
	{
		Name: "nothing-asked-for", Severity: Warning,
		Means:  "no pod of this node asks for a checkpoint: nothing but the agent would come back",
		Remedy: "annotate pods checkpointer.alpha.coreos.com/checkpoint: \"true\", in a namespace that --namespaces names",
		find: func(f *Facts) []string {
			return one(f.Report != nil && !slices.ContainsFunc(f.rows(), func(row status.Lineage) bool { return !row.Self }), "no lineage but the agent's own")
		},
	},
}

// declares says whether a checkpoint, or else a static pod of somebody else, runs the program.
func (f *Facts) declares(program string, others bool) bool {
	var pods []*corev1.Pod
	for _, c := range f.Checkpoints {
		pods = append(pods, c.Pod)
	}
	if others {
		pods = append(pods, f.Others...)
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			words := append(slices.Clone(c.Command), c.Args...)
			return len(words) > 0 && path.Base(words[0]) == program || imageName(c.Image) == program
		})
	})
}

// imageName is the last part of an image's name, as kube-apiserver of registry.k8s.io/kube-apiserver:v1.37.2@sha256:...
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(path.Base(image), ":")
	return strings.TrimSuffix(name, "-amd64")
}

// ordinary are the plugins that need nobody but the runtime: https://github.com/containernetworking/plugins.
var ordinary = []string{
	"bandwidth", "bridge", "dummy", "firewall", "host-device", "host-local", "ipvlan", "loopback", "macvlan", "portmap", "ptp", "sbr", "static", "tap", "tuning", "vlan", "vrf",
}

func (f *Facts) specialPlugins() (special []string) {
	for _, plugin := range f.Runtime.Plugins {
		if !slices.Contains(ordinary, plugin) {
			special = append(special, plugin)
		}
	}
	return special
}

// needNetwork are the checkpoints with a network of their own.
func (f *Facts) needNetwork() (names []string) {
	for _, c := range f.Checkpoints {
		if !c.Pod.Spec.HostNetwork && c.Stored != checkpoint.Missing {
			names = append(names, c.String())
		}
	}
	return names
}

// networkDirs are where an agent of the network puts its plugin and its configuration.
var networkDirs = []string{"/etc/cni/net.d", "/opt/cni/bin", "/usr/lib/cni", "/opt/cni", "/etc/cni"}

func (f *Facts) hasNetworkAgent() bool {
	return slices.ContainsFunc(f.Checkpoints, func(c Checkpoint) bool {
		return c.Pod.Spec.HostNetwork && slices.ContainsFunc(c.Pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.HostPath != nil && slices.Contains(networkDirs, path.Clean(v.HostPath.Path))
		})
	})
}
