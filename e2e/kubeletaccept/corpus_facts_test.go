package kubeletaccept

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

const (
	configMap = "kubernetes.io~configmap"
	secret    = "kubernetes.io~secret"
	projected = "kubernetes.io~projected"
)

// corpusFacts are the facts of expected.tsv that show in a manifest, beside those that facts and sameEnvironment check of
// every pod: what was kept, read-only mounts, host ports, requests, and each variable's value. What the copies of volumes
// look like, items, modes and owners, is the store's.
// What we see differently is in seenDifferently.
var corpusFacts = map[string]func(t *testing.T, j *judgment){
	"01-cilium.json":                           all(copied("config", configMap), literals("cilium-agent", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")),
	"02-cilium-full.json":                      all(copied("clustermesh-secrets", projected), absent("clean-cilium-state", "CILIUM_ALL_STATE"), initOrder("config", "mount-cgroup", "apply-sysctl-overwrites", "mount-bpf-fs", "clean-cilium-state", "install-cni-binaries")),
	"04-calico-node.json":                      all(literals("install-cni", "CNI_NETWORK_CONFIG", "CNI_MTU"), literals("upgrade-ipam", "CALICO_NETWORKING_BACKEND"), literals("calico-node", "FELIX_TYPHAK8SSERVICENAME", "FELIX_IPINIPMTU", "FELIX_VXLANMTU", "FELIX_WIREGUARDMTU")),
	"05-calico-typha.json":                     noPorts,
	"07-kube-proxy-typhoon.json":               all(copied("kubeconfig", configMap), noPorts, probed("kube-proxy", 10256)),
	"08-kube-proxy-kubeadm.json":               copied("kube-proxy", configMap),
	"10-node-local-dns.json":                   all(copied("config-volume", configMap), copied("kube-dns-config", configMap), noPorts),
	"13-nvidia-device-plugin.json":             nothingButToken,
	"14-node-exporter.json":                    all(noPorts, nothingButToken),
	"16-fluent-bit.json":                       copied("fluent-bit-config", configMap),
	"17-longhorn-manager.json":                 all(copied("longhorn-grpc-tls", secret), warns(0, "")),
	"19-rook-ceph-tools.json":                  all(copied("ceph-admin-secret", secret), copied("mon-endpoint-volume", configMap), copied("rook-config-override", configMap)),
	"20-openebs-ndm.json":                      copied("config", configMap),
	"22-csi-nfs-node.json":                     all(noPorts, probed("node-driver-registrar", 19809), probed("nfs", 29653)),
	"23-secrets-store-csi.json":                all(nothingButToken, probed("secrets-store", 9808)),
	"25-istio-cni-node.json":                   all(noPorts, literals("install-cni", "EXAMPLE_ENV", "POD_NAME"), first("install-cni", "EXAMPLE_ENV", "REPAIR_NODE_NAME")),
	"26-ztunnel.json":                          all(copied("istio-token", projected), copied("istiod-ca-cert", configMap), warns(1, "istio-ca"), literals("istio-proxy", "SERVICE_ACCOUNT", "ZTUNNEL_RESOURCE_CPU_REQUEST")),
	"29-ingress-nginx-kind.json":               copied("webhook-cert", secret),
	"31-kured.json":                            nothingButToken,
	"32-metrics-server.json":                   all(nothingButToken, probed("metrics-server", 10250, 10250)),
	"34-kube-apiserver-bootkube.json":          copied("secrets", secret),
	"35-kube-controller-manager-bootkube.json": all(copied("secrets", secret), probed("kube-controller-manager", 10257)),
	"37-pod-checkpointer.json":                 all(copied("kubeconfig", configMap), literals("pod-checkpointer", "POD_NAME", "POD_NAMESPACE")),
	"38-kenc.json":                             nothingButToken,
	"40-etcd-openshift.json":                   all(noPorts, probed("etcd", 9980, 9980, 9980), initOrder("setup", "etcd-ensure-env-vars", "etcd-resources-copy")),
	"41-etcd-gce.json":                         all(noPorts, nothingButToken),
	"43-konnectivity-agent-k0s.json":           all(copied("konnectivity-agent-token", projected), warns(1, "system:konnectivity-server")),
	"44-edgemesh-agent.json":                   all(copied("psk", configMap, "config"), copied("conf", configMap)),
	"46-edge-eclipse-mosquitto.json":           nothingButToken,
	"47-yurt-hub.json":                         all(nothingButToken, probed("yurt-hub", 10267, 10267)),
	"52-falco.json":                            all(copied("falco-yaml", configMap), copied("falcoctl-config-volume", configMap), initOrder("falco-driver-loader", "falcoctl-artifact-install")),
	"53-datadog.json":                          all(copied("installinfo", configMap), copied("sysprobe-config", configMap), noSecretValue),
	"55-vector-aggregator.json":                all(copied("config", projected), hostname("vector-0")),
	"56-promtail.json":                         copied("promtail", configMap),
	"58-keepalived-vip.json":                   all(nothingButToken, literals("kube-keepalived-vip", "POD_NAME")),
	"59-haproxy.json":                          nothingButToken,
	"61-aws-node.json":                         all(noPorts, nothingButToken, literals("aws-node", "MY_POD_NAME")),
	"62-openstack-ccm.json":                    copied("cloud-config-volume", secret),
	"64-kube-router.json":                      all(copied("kube-router-cfg", configMap), copied("kubeconfig", configMap)),
	"65-nfd-worker.json":                       all(copied("nfd-worker-conf", configMap, "features.d"), probed("nfd-worker", 8080, 8080)),
	"67-local-path-provisioner.json":           copied("config-volume", configMap),
	"68-spire-agent.json":                      all(copied("spire-config", configMap), copied("spire-bundle", configMap), copied("spire-token", projected), warns(1, "spire-server")),
	"74-velero-restic.json":                    all(copied("cloud-credentials", secret), noSecretValue),
	"76-prometheus-typhoon.json":               all(copied("config", configMap, "rules"), copied("rules", configMap)),
}

func all(checks ...func(*testing.T, *judgment)) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		for _, check := range checks {
			check(t, j)
		}
	}
}

// copied checks that a volume became a hostPath with a copy of the parent's, in which these directories exist.
func copied(volume, plugin string, dirs ...string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		i := slices.IndexFunc(j.result.Assets, func(a manifest.Asset) bool { return a.Volume == volume })
		if i < 0 {
			t.Fatalf("no asset %s in %v", volume, j.result.Assets)
		}
		if asset := j.result.Assets[i]; asset.Plugin != plugin || !slices.Equal(asset.Dirs, dirs) {
			t.Errorf("got %v", asset)
		}
		want := filepath.Join(options.AssetsDir, j.parent.Namespace+"_"+j.parent.Name, volume)
		if v := j.decoded.Spec.Volumes[slices.IndexFunc(j.decoded.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })]; v.HostPath == nil || v.HostPath.Path != want {
			t.Errorf("volume %s is %v", volume, v.VolumeSource)
		}
	}
}

func nothingButToken(t *testing.T, j *judgment) {
	if len(j.result.Assets) != 1 || j.result.Assets[0].Plugin != projected {
		t.Errorf("assets are %v", j.result.Assets)
	}
}

func variable(t *testing.T, j *judgment, container, name string) (v corev1.EnvVar, index int) {
	t.Helper()
	index = -1
	visit(j.decoded, func(c *corev1.Container) {
		for i, e := range c.Env {
			if c.Name == container && e.Name == name {
				v, index = e, i // the last wins
			}
		}
	})
	return v, index
}

func literals(container string, names ...string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		for _, name := range names {
			if v, i := variable(t, j, container, name); i < 0 || v.ValueFrom != nil || v.Value == "" {
				t.Errorf("%s of %s is %v", name, container, v)
			}
		}
	}
}

func fromFile(container, name string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		if v, i := variable(t, j, container, name); i < 0 || v.ValueFrom == nil || v.ValueFrom.FileKeyRef == nil {
			t.Errorf("%s of %s is %v", name, container, v)
		}
	}
}

func absent(container, name string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		if v, i := variable(t, j, container, name); i >= 0 {
			t.Errorf("%s of %s is %v", name, container, v)
		}
	}
}

func first(container, one, other string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		_, a := variable(t, j, container, one)
		if _, b := variable(t, j, container, other); a < 0 || b < 0 || a > b {
			t.Errorf("%s is at %d and %s at %d", one, a, other, b)
		}
	}
}

func noPorts(t *testing.T, j *judgment) {
	visit(j.decoded, func(c *corev1.Container) {
		if len(c.Ports) > 0 {
			t.Errorf("container %s has the ports %v", c.Name, c.Ports)
		}
	})
}

func probed(container string, ports ...int) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		visit(j.decoded, func(c *corev1.Container) {
			if got := handlerPorts(c); c.Name == container && !slices.Equal(got, ports) {
				t.Errorf("container %s is probed on %v, want %v", container, got, ports)
			}
		})
	}
}

func initOrder(names ...string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		var got []string
		for _, c := range j.decoded.Spec.InitContainers {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("init containers are %v, want %v", got, names)
		}
	}
}

func warns(count int, about string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		if got := warned(j, about); got != count {
			t.Errorf("warnings are %v", j.result.Warnings)
		}
	}
}

func hostname(want string) func(*testing.T, *judgment) {
	return func(t *testing.T, j *judgment) {
		if got := j.decoded.Spec.Hostname; got != want {
			t.Errorf("hostname is %s", got)
		}
	}
}

// noSecretValue checks that no value of a Secret that a variable of the pod has is in the manifest.
func noSecretValue(t *testing.T, j *judgment) {
	for _, reference := range manifest.Needs(j.parent) {
		if reference.Kind != "Secret" || j.refs.Secrets[reference.Name] == nil {
			continue
		}
		for key, value := range j.refs.Secrets[reference.Name].Data {
			if bytes.Contains(j.result.Manifest, value) {
				t.Errorf("the value of %s/%s is in the manifest", reference.Name, key)
			}
		}
	}
}
