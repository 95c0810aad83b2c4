package doctor

import (
	"fmt"
	"time"
)

const (
	littleBytes = 100 << 20
	littlePart  = 0.05
	soon        = 7 * 24 * time.Hour // a kubelet replaces its certificate long before
)

// machineKinds are about what everything rests on.
var machineKinds = []Kind{
	{
		Name: "directory-unreadable", Severity: Error,
		Means:  "the kubelet has no directory of static pods here, or the checkpoints in it can't be read: nothing would be started",
		Remedy: "set staticPodPath in the kubelet's configuration and --manifests-dir to the same directory, and make it; as root, or in the agent's container",
		find:   func(f *Facts) []string { return said(f.DiskErr) },
	},
	{
		Name: "runtime-silent", Severity: Error,
		Means:  "the container runtime does not answer: no pod can start, and nobody can tell which images are there",
		Remedy: "look at the runtime (systemctl status containerd or crio), or name its socket by --container-runtime-endpoint",
		find:   func(f *Facts) []string { return said(f.RuntimeErr) },
	},
	{
		Name: "disk-nearly-full", Severity: Warning,
		Means:  "changes of pods and of their Secrets may not get into the checkpoints, and the kubelet evicts pods and deletes images",
		Remedy: "make room in the file system",
		find: func(f *Facts) (found []string) {
			for _, s := range f.Spaces {
				if s.Bytes < littleBytes || s.BytesPart < littlePart {
					found = append(found, fmt.Sprintf("%s: %d MiB are left, %.0f %%", s.Path, s.Bytes>>20, s.BytesPart*100))
				} else if s.FilePart < littlePart {
					found = append(found, fmt.Sprintf("%s: %d inodes are left, %.0f %%", s.Path, s.Files, s.FilePart*100))
				}
			}
			return found
		},
	},
	{
		Name: "certificate-ending", Severity: Warning,
		Means:  "the node's client certificate ends: from then on the API server refuses the agent, and the kubelet, too; checkpoints are still started, but none is brought up to date or withdrawn",
		Remedy: "see why the kubelet does not rotate it (rotateCertificates, and whether the controller manager signs), or give the node a new one",
		find: func(f *Facts) []string {
			return one(!f.Cert.IsZero() && f.Cert.Before(f.Now.Add(soon)), fmt.Sprintf("the certificate of %s ends at %s", f.Kubeconfig, f.Cert.UTC().Format(time.RFC3339)))
		},
	},
	{
		Name: "kubeconfig-unusable", Severity: Warning,
		Means:  "the agent can't ask the API server: checkpoints that are stored are started, but none is made, brought up to date or withdrawn",
		Remedy: "name the node's own credential by --kubeconfig",
		find:   func(f *Facts) []string { return said(f.CertErr) },
	},
}
