// Package binaries compiles the programs of a Kubernetes node from their Go
// modules and keeps them in the user's cache, one directory per version. What
// has no Go module (runc with seccomp, the CNI plugins) comes from Debian.
package binaries

import (
	"os"
	"strings"
)

// The one place where versions are pinned.
const (
	kubernetesVersion = "1.37.2" // the environment's KUBE_VERSION overrides it
	containerdVersion = "2.4.2"  // CONTAINERD_VERSION overrides it
	etcdVersion       = "3.6.16"
	crictlVersion     = "1.37.0"
	corednsVersion    = "1.15.0"
	mochiVersion      = "2.7.9"
)

// source is one Go module and the commands that are built from it.
type source struct {
	name    string // names the directory in the cache
	version string // without the leading v
	module  string
	// recipe tells builds of one version apart in the cache, when how it is built
	// has changed.
	recipe string
	// stamp is the package whose variables hold the version of a release build.
	stamp string
	// commands are package paths below module. An empty path stands for main.
	commands []string
	// main, for modules that `go install` refuses, is a main package that
	// links the module.
	main string
}

func sources() []source {
	return []source{
		{
			name: "kubernetes", version: KubernetesVersion(), module: "k8s.io/kubernetes",
			recipe: "stamped", stamp: "k8s.io/component-base/version",
			commands: []string{"cmd/kubelet", "cmd/kube-apiserver", "cmd/kube-controller-manager", "cmd/kube-scheduler", "cmd/kubectl"},
		},
		{
			name: "containerd", version: ContainerdVersion(), module: containerdModule(),
			commands: []string{"cmd/containerd", "cmd/containerd-shim-runc-v2", "cmd/ctr"},
		},
		{
			name: "crictl", version: crictlVersion, module: "sigs.k8s.io/cri-tools",
			commands: []string{"cmd/crictl"},
		},
		{
			name: "etcd", version: etcdVersion, module: "go.etcd.io/etcd/server/v3",
			main: etcdMain,
		},
		{
			name: "coredns", version: corednsVersion, module: "github.com/coredns/coredns",
			main: corednsMain,
		},
		{
			name: "mochi", version: mochiVersion, module: "github.com/mochi-mqtt/server/v2",
			main: mochiMain,
		},
	}
}

// ldflags strips symbols, and stamps the version as a release build has it:
// without, a kubelet tells the cluster that it is v0.0.0.
func (s source) ldflags() string {
	flags := "-s -w"
	if s.stamp != "" {
		parts := strings.SplitN(s.version, ".", 3)
		for name, value := range map[string]string{"gitVersion": "v" + s.version, "gitMajor": parts[0], "gitMinor": parts[1]} {
			flags += " -X " + s.stamp + "." + name + "=" + value
		}
	}
	return flags
}

// etcdMain is what go.etcd.io/etcd/v3 builds as its etcd command; that module
// can't be required, because it replaces its own parts by local directories.
const etcdMain = `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`

// corednsMain is CoreDNS with the plugins that a cluster's DNS needs, and without the clouds' SDKs that the others link
// (https://coredns.io/2017/07/25/compile-time-enabling-or-disabling-plugins).
const corednsMain = `package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
`

// mochiMain is an MQTT broker that lets everybody in, at the address that is its one argument. Its own command would
// have to be fetched with the databases that it can use.
const mochiMain = `package main

import (
	"log"
	"os"
	"os/signal"
	"syscall"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
)

func main() {
	broker := mqtt.New(nil)
	if err := broker.AddHook(new(auth.AllowHook), nil); err != nil {
		log.Fatal(err)
	}
	if err := broker.AddListener(listeners.NewTCP(listeners.Config{ID: "tcp", Address: os.Args[1]})); err != nil {
		log.Fatal(err)
	}
	if err := broker.Serve(); err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	broker.Close()
}
`

// KubernetesVersion is the version of the kubelet and the control plane,
// without a leading v.
func KubernetesVersion() string { return pinned("KUBE_VERSION", kubernetesVersion) }

// ContainerdVersion is the version of containerd, without a leading v.
func ContainerdVersion() string { return pinned("CONTAINERD_VERSION", containerdVersion) }

func containerdModule() string {
	if strings.HasPrefix(ContainerdVersion(), "1.") {
		return "github.com/containerd/containerd"
	}
	return "github.com/containerd/containerd/v2"
}

func pinned(variable, version string) string {
	if v := os.Getenv(variable); v != "" {
		return strings.TrimPrefix(v, "v")
	}
	return version
}
