package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/probe"
)

// unixScheme begins the address of a socket.
const unixScheme = "unix://"

// maxSocketName is the room in a sockaddr_un (unix(7)).
const maxSocketName = 108

// options are the flags of `checkpointer run`.
type options struct {
	nodeName   string
	namespaces []string
	kubeconfig string
	kubeletDir string
	dirs       manifest.Dirs
	lockFile   string
	socket     string // that probes ask at

	runtimeEndpoint string
	runtimeTimeout  time.Duration

	policy checkpoint.Policy

	logLevel  string
	logFormat string

	podNamespace, podName string // of this very pod: POD_NAMESPACE and POD_NAME; empty outside of one
}

// add defines the flags. The defaults of --node-name and --namespaces come from the variables that a pod is given by
// its downward API.
func (o *options) add(flags *pflag.FlagSet, env lookupEnv) {
	o.podNamespace, _ = env("POD_NAMESPACE")
	o.podName, _ = env("POD_NAME")
	nodeName, _ := env("NODE_NAME")
	namespace := o.podNamespace
	if namespace == "" {
		namespace = "kube-system"
	}
	o.policy = checkpoint.DefaultPolicy()

	flags.StringVar(&o.nodeName, "node-name", nodeName, "name of this node's Node object; NODE_NAME by default")
	flags.StringSliceVar(&o.namespaces, "namespaces", []string{namespace}, "namespaces in which pods may ask for a checkpoint")
	addKubeconfig(flags, &o.kubeconfig)
	flags.StringVar(&o.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's root directory")
	addDirs(flags, &o.dirs)
	addLockFile(flags, &o.lockFile)
	addProbeSocket(flags, &o.socket)
	addRuntimeEndpoint(flags, &o.runtimeEndpoint)
	flags.DurationVar(&o.runtimeTimeout, "runtime-request-timeout", 10*time.Second, "how long a call of the container runtime may take")
	flags.DurationVar(&o.policy.Grace, "checkpoint-grace-period", o.policy.Grace, "how long a pod must be gone before its checkpoint is removed")
	flags.DurationVar(&o.policy.APITimeout, "api-timeout", o.policy.APITimeout, "how long an API server that says nothing is waited for at start")
	flags.DurationVar(&o.policy.Settle, "settle", o.policy.Settle, "how long a pod's containers must be quiet before the kubelet is ruled out to be restarting them")
	flags.DurationVar(&o.policy.StuckAfter, "stuck-after", o.policy.StuckAfter, "how long a pod that the API server wants here may be down")
	flags.DurationVar(&o.policy.PromoteAfter, "promote-after", o.policy.PromoteAfter, "how long a successor must be Ready before its checkpoint replaces the last good one")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or console")
}

// addDirs defines the flags that name the directories of checkpoints.
func addDirs(flags *pflag.FlagSet, dirs *manifest.Dirs) {
	flags.StringVar(&dirs.Manifests, "manifests-dir", "/etc/kubernetes/manifests", "the kubelet's static pod directory")
	flags.StringVar(&dirs.Inactive, "inactive-dir", "/etc/kubernetes/inactive-manifests", "where manifests wait that are not needed now")
	flags.StringVar(&dirs.Assets, "assets-dir", "/etc/kubernetes/checkpoint-assets", "where Secrets, ConfigMaps and tokens of checkpoints lie; the same path on the host")
}

func addLockFile(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "lock-file", "/run/lock/pod-checkpointer.lock", "held by the one copy on this node that acts")
}

func addKubeconfig(flags *pflag.FlagSet, path *string) {
	flags.StringVar(path, "kubeconfig", "/etc/kubernetes/kubelet.conf", "credentials for the API server: the node's own")
}

func addRuntimeEndpoint(flags *pflag.FlagSet, endpoint *string) {
	flags.StringVar(endpoint, "container-runtime-endpoint", "", "CRI socket, as unix:///path; found among the usual places by default")
}

func validateEndpoint(endpoint string) error {
	if path, ok := strings.CutPrefix(endpoint, unixScheme); endpoint != "" && (!ok || !filepath.IsAbs(path)) {
		return fmt.Errorf("--container-runtime-endpoint must be a socket, as unix:///path, not %q", endpoint)
	}
	return nil
}

// addProbeSocket defines the flag that agent and probe must agree on.
func addProbeSocket(flags *pflag.FlagSet, socket *string) {
	flags.StringVar(socket, "probe-socket", probe.DefaultSocket(), "abstract socket at which the agent answers probes; set it by its variable, so that the probe in the same container has it too")
}

func checkSocket(name string) error {
	if len(name) < 2 || len(name) > maxSocketName || name[0] != '@' {
		return fmt.Errorf("--probe-socket must be an abstract socket, as @name, of at most %d bytes, not %q", maxSocketName, name)
	}
	return nil
}

// validate says what is wrong with the values, one thing at a time.
func (o *options) validate() error {
	if o.nodeName == "" {
		return errors.New("no node name: set --node-name, or NODE_NAME from the pod's spec.nodeName")
	}
	if len(o.namespaces) == 0 || slices.Contains(o.namespaces, "") {
		return fmt.Errorf("--namespaces must name at least one namespace, and none that is empty, not %q", strings.Join(o.namespaces, ","))
	}
	if err := cmp.Or(validateDirs(o.dirs), validatePath("kubeconfig", o.kubeconfig), validatePath("kubelet-dir", o.kubeletDir), validatePath("lock-file", o.lockFile)); err != nil {
		return err
	}
	if o.dirs.Inactive == o.dirs.Manifests {
		return fmt.Errorf("--inactive-dir must not be the kubelet's static pod directory %s: the kubelet would run what lies there", o.dirs.Manifests)
	}
	delays := map[string]time.Duration{
		"checkpoint-grace-period": o.policy.Grace, "api-timeout": o.policy.APITimeout, "settle": o.policy.Settle,
		"stuck-after": o.policy.StuckAfter, "promote-after": o.policy.PromoteAfter,
	}
	for _, flag := range slices.Sorted(maps.Keys(delays)) {
		if delays[flag] < 0 {
			return fmt.Errorf("--%s must not be negative, as %v is", flag, delays[flag])
		}
	}
	if err := validateEndpoint(o.runtimeEndpoint); err != nil {
		return err
	}
	if err := checkSocket(o.socket); err != nil {
		return err
	}
	if o.runtimeTimeout <= 0 {
		return fmt.Errorf("--runtime-request-timeout must be more than nothing, not %v", o.runtimeTimeout)
	}
	return nil
}

// logger makes the one logger of the process.
func (o *options) logger(w io.Writer) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(o.logLevel)
	if err != nil || level < zerolog.DebugLevel || level > zerolog.ErrorLevel {
		return zerolog.Nop(), fmt.Errorf("--log-level must be debug, info, warn or error, not %q", o.logLevel)
	}
	switch o.logFormat {
	case "json":
	case "console":
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.RFC3339, NoColor: !isTerminal(w)}
	default:
		return zerolog.Nop(), fmt.Errorf("--log-format must be json or console, not %q", o.logFormat)
	}
	return zerolog.New(w).Level(level).With().Timestamp().Str("node", o.nodeName).Logger(), nil
}

// isTerminal says whether colours are for a person's eyes.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && isatty.IsTerminal(file.Fd())
}
