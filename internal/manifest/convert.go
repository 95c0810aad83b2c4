package manifest

import (
	"bytes"
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options is what Convert has to know of the node.
type Options struct {
	AssetsDir      string // on the host, as "/etc/kubernetes/checkpoint-assets"
	NodeName       string
	KubeletVersion string // as the Node object says it; empty: unknown
	AgentImage     string // for the init container that hands Secrets to the environment; empty: none
	ServiceHost    string // literal for KUBERNETES_SERVICE_HOST; empty: unknown
	ServicePort    string // literal for KUBERNETES_SERVICE_PORT
}

// Result is a checkpoint, not yet on disk.
type Result struct {
	Pod      *corev1.Pod
	Manifest []byte // Pod as JSON, always the same bytes for the same pod
	Assets   []Asset
	Warnings []Finding
}

// Asset is a directory below AssetsDir/<namespace>_<name>/ that a volume of the checkpoint is a hostPath to. It looks
// like a volume of the kubelet: the files lie in a directory that the symlink ..data names.
type Asset struct {
	Volume string // name of the pod's volume, and of the directory
	// Plugin is the directory of the parent's volume below <kubelet-dir>/pods/<uid>/volumes/, whose content is copied.
	Plugin string
	// Dirs are empty directories that must exist inside, because other mounts nest in this one.
	Dirs []string
	// Files is the content of an asset that no volume of the parent has. Plugin is empty then.
	Files map[string][]byte
}

// Convert makes a static pod of a pod as the API server returns it. It does not change pod. The error is a *Refusal.
func Convert(pod *corev1.Pod, refs References, opts Options) (Result, error) {
	c := &conversion{parent: pod, refs: refs, opts: opts, pod: &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: *pod.ObjectMeta.DeepCopy(),
		Spec:       *pod.Spec.DeepCopy(),
	}}
	if c.checkKind(); len(c.refusals) > 0 {
		return Result{}, &Refusal{c.refusals}
	}
	c.checkUnknown()
	c.checkName()
	c.convertVolumes()
	c.convertContainers()
	c.convertSpec()
	c.addEnvFile()
	c.convertMeta()
	if len(c.refusals) > 0 {
		return Result{}, &Refusal{c.refusals}
	}
	encoded, err := encode(c.pod)
	if err != nil {
		return Result{}, fmt.Errorf("the manifest of %s/%s can't be encoded: %w", pod.Namespace, pod.Name, err)
	}
	if c.checkSize(encoded); len(c.refusals) > 0 {
		return Result{}, &Refusal{c.refusals}
	}
	return Result{Pod: c.pod, Manifest: encoded, Assets: c.assets, Warnings: c.warnings}, nil
}

// conversion is one call of Convert. It changes pod, a copy of parent, step by step.
type conversion struct {
	parent *corev1.Pod
	refs   References
	opts   Options

	pod      *corev1.Pod
	assets   []Asset
	warnings []Finding
	refusals []Finding

	readOnly map[string]bool // names of the volumes that every container must mount read-only

	envFile bytes.Buffer      // the variables from Secrets, as k8s.io/kubernetes/pkg/kubelet/util/env.ParseEnv reads them
	envKeys map[string]string // their keys, by value
}

// report adds a reason to refuse the pod, unless it has been given.
func (c *conversion) report(f Finding) {
	if !slices.Contains(c.refusals, f) {
		c.refusals = append(c.refusals, f)
	}
}

func (c *conversion) refuse(path, problem, remedy string) {
	c.report(Finding{path, problem, remedy})
}

func (c *conversion) warn(path, problem, remedy string) {
	if f := (Finding{path, problem, remedy}); !slices.Contains(c.warnings, f) {
		c.warnings = append(c.warnings, f)
	}
}

// checkKind refuses what is no parent, whatever it contains.
func (c *conversion) checkKind() {
	switch {
	case isCheckpoint(c.parent):
		c.refuse("metadata.annotations", "already a checkpoint", "annotate the pod that it was made of, "+c.parent.Annotations[AnnotationCheckpointOf])
	case isStatic(c.parent):
		c.refuse("metadata.annotations", "already a static pod: the kubelet starts it without an API server", "remove the annotation "+AnnotationCheckpoint)
	case c.parent.Name == "" || c.parent.Namespace == "":
		c.refuse("metadata", "a name and a namespace are needed", "set metadata.name and metadata.namespace")
	}
}

func (c *conversion) checkUnknown() {
	for _, f := range c.refs.Unknown.Spec {
		c.report(f)
	}
	for _, f := range c.refs.Unknown.Elsewhere {
		c.warn(f.Path, f.Problem, f.Remedy)
	}
}

// checkName refuses names that a static pod would be too long with: the kubelet appends the node's name
// (k8s.io/kubernetes/pkg/kubelet/config/common.go, generatePodName), and makes a directory for the logs whose name is
// <namespace>_<name>_<uid> (k8s.io/kubernetes/pkg/kubelet/kuberuntime/helpers.go, BuildPodLogsDirectory).
func (c *conversion) checkName() {
	const uid = 32 // hexadecimal digits of a static pod's
	const nameMax = 255
	name := c.parent.Name
	if c.opts.NodeName != "" {
		name += "-" + c.opts.NodeName
	}
	if len(name) > validation.DNS1123SubdomainMaxLength {
		c.refuse("metadata.name", fmt.Sprintf("with the node's name it has %d characters, and %d are allowed", len(name), validation.DNS1123SubdomainMaxLength), "use a shorter name")
	} else if length := len(c.parent.Namespace + "_" + name + "_"); length+uid > nameMax {
		c.refuse("metadata.name", fmt.Sprintf("the directory of its logs would have a name of %d characters, and %d are allowed", length+uid, nameMax), "use a shorter name")
	}
}

// checkSize refuses what the kubelet does not read: a manifest of more than 10 MiB, to which resolved variables can add
// up, and annotations of more than 256 KiB, of which a checkpoint has more than its parent
// (k8s.io/kubernetes/pkg/kubelet/config/common.go, maxConfigLength and applyDefaults;
// k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
func (c *conversion) checkSize(encoded []byte) {
	const maxManifest = 10 << 20
	const later = 256 // the kubelet's annotation config.hash, and our nonce
	if size := len(encoded) + later; size > maxManifest {
		c.refuse("spec", fmt.Sprintf("the manifest would have %d bytes, and the kubelet reads %d", size, maxManifest), "mount large ConfigMaps as volumes instead of taking variables from them")
	}
	size := later
	for key, text := range c.pod.Annotations {
		size += len(key) + len(text)
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		c.refuse("metadata.annotations", fmt.Sprintf("with a checkpoint's own they would have %d bytes, and %d are allowed", size, apivalidation.TotalAnnotationSizeLimitB), "shorten them")
	}
}

// hostDir is where on the host the asset of a volume lies.
func (c *conversion) hostDir(volume string) string {
	return path.Join(c.opts.AssetsDir, c.parent.Namespace+"_"+c.parent.Name, volume)
}
