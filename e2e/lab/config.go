//go:build linux

package lab

import (
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
)

// containerdConfiguration is containerd's. The defaults are the stock paths. A
// machine in a container or sandbox may not lower oom_score_adj, so containerd
// is told not to try.
func containerdConfiguration() string {
	if strings.HasPrefix(binaries.ContainerdVersion(), "1.") {
		return containerd1TOML
	}
	return containerd2TOML
}

const containerd1TOML = `version = 2

[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = '` + pauseImage + `'
restrict_oom_score_adj = true

[plugins.'io.containerd.grpc.v1.cri'.cni]
bin_dir = '` + binaries.CNIDir + `'
conf_dir = '` + cniConfigs + `'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.internal.v1.opt']
path = '/var/lib/containerd/opt'
`

const containerd2TOML = `version = 3

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '` + pauseImage + `'

[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['` + binaries.CNIDir + `']
conf_dir = '` + cniConfigs + `'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

# It would make /opt/containerd on the real machine.
[plugins.'io.containerd.internal.v1.opt']
path = '/var/lib/containerd/opt'
`

// cniConfiguration joins each pod to the node by a cable. The cluster has a route to
// podCIDR, so nothing is masqueraded.
func (m machine) cniConfiguration() string {
	return `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "` + m.podCIDR() + `"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    }
  ]
}
`
}

// kubeletConfiguration is kubeadm's, except where this machine differs from a
// node: other cgroups, no swap to worry about, a disk that others fill.
func (n *Node) kubeletConfiguration() map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1",
		"kind":       "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              kubeletPKI + "/kubelet.crt",
		"tlsPrivateKeyFile":        kubeletPKI + "/kubelet.key",
		"staticPodPath":            Manifests,
		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"cgroupRoot":               "/" + n.machine.run.Cgroup(n.machine.number),
		"cgroupDriver":             "cgroupfs",
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"enforceNodeAllocatable":   []string{},
		"oomScoreAdj":              0,
		"volumePluginDir":          KubeletDir + "/volumeplugins",
		"evictionHard": map[string]string{
			"memory.available":  "50Mi",
			"nodefs.available":  "1%",
			"nodefs.inodesFree": "1%",
			"imagefs.available": "1%",
		},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
}
