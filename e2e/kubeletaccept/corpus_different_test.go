package kubeletaccept

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

const (
	hostPortsGo = "host ports of a pod with a network of its own go, with a warning: a kubelet rejects a pod whose host port another declares, and the parent for good when it returns. The annotation keeps them"
	inAFile     = "a value from a Secret is no literal, which everyone who may read pods would see in the mirror pod, but comes by a file"
	portsStay   = "on a network of the pod's own its ports take nothing from the parent, and a Service finds a named target port by them"
)

// seenDifferently are facts of expected.tsv that we do not follow, in its words, and what is so instead, and why.
var seenDifferently = []struct {
	file, theirs, ours string
	check              func(*testing.T, *judgment)
}{
	{"19-rook-ceph-tools.json", "env ROOK_CEPH_USERNAME literal", inAFile, fromFile("rook-ceph-tools", "ROOK_CEPH_USERNAME")},
	{"23-secrets-store-csi.json", "ports removed", portsStay, ownPorts},
	{"28-ingress-nginx-hostport.json", "hostPorts must survive", hostPortsGo, warns(3, manifest.AnnotationKeepHostPorts)},
	{"29-ingress-nginx-kind.json", "hostPort 80/443 as 28", hostPortsGo, warns(2, manifest.AnnotationKeepHostPorts)},
	{"32-metrics-server.json", "ports removed", portsStay, ownPorts},
	{"53-datadog.json", "env DD_API_KEY literal from secret in 4 containers", inAFile, all(fromFile("init-config", "DD_API_KEY"), fromFile("agent", "DD_API_KEY"), fromFile("trace-agent", "DD_API_KEY"), fromFile("process-agent", "DD_API_KEY"))},
	{"53-datadog.json", "hostPort 8126 on pod network", hostPortsGo, warns(1, manifest.AnnotationKeepHostPorts)},
	{"65-nfd-worker.json", "ports removed", portsStay, ownPorts},
	{"74-velero-restic.json", "AZURE_CREDENTIALS_FILE secret literal", inAFile, all(fromFile("restic", "EXAMPLE_ENV"), fromFile("restic", "AZURE_CREDENTIALS_FILE"))},
	{"76-prometheus-typhoon.json", "ports removed", portsStay, ownPorts},
}

func ownPorts(t *testing.T, j *judgment) {
	var ports int
	visit(j.decoded, func(c *corev1.Container) {
		for _, port := range c.Ports {
			ports++
			if port.HostPort != 0 {
				t.Errorf("the host port %d of %s is left", port.HostPort, c.Name)
			}
		}
	})
	if ports == 0 {
		t.Error("it has no ports")
	}
}
