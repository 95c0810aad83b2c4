package manifest

// Prefix is common to every annotation of ours. It is the predecessor's, so that existing pods keep their meaning.
const Prefix = "checkpointer.alpha.coreos.com/"

// Annotations that a person puts on a pod.
const (
	// AnnotationCheckpoint asks for a checkpoint: "true".
	AnnotationCheckpoint = Prefix + "checkpoint"
	// AnnotationHandover says how a checkpoint makes room for its parent: "ready" or "exclusive". A checkpoint carries
	// what was decided, also "created".
	AnnotationHandover = Prefix + "handover"
	// AnnotationKeepRequests keeps the resource requests: "true". They then count beside the parent's own.
	AnnotationKeepRequests = Prefix + "keep-requests"
	// AnnotationKeepHostPorts keeps the host ports of a pod that has a network of its own: "true".
	AnnotationKeepHostPorts = Prefix + "keep-host-ports"
	// AnnotationSecretEnv set to "inline" accepts that variables from Secrets can be read in the manifest and in the
	// mirror pod.
	AnnotationSecretEnv = Prefix + "secret-env"
)

// Annotations that we put on a checkpoint.
const (
	// AnnotationCheckpointOf is the name of the parent. It is what makes a pod a checkpoint.
	AnnotationCheckpointOf = Prefix + "checkpoint-of"
	AnnotationParentUID    = Prefix + "parent-uid"
	// AnnotationLineage is LineageOf the parent.
	AnnotationLineage = Prefix + "lineage"
	// AnnotationHostPorts lists the ports of the node that the pod says it takes, as "80/TCP,127.0.0.1:53/UDP". Most of
	// them are no longer in the spec.
	AnnotationHostPorts = Prefix + "host-ports"
	// AnnotationFormat is the version of what we write: Format.
	AnnotationFormat = Prefix + "format"
	// AnnotationNonce is changed to make the kubelet try again a static pod that it rejected.
	AnnotationNonce = Prefix + "nonce"
)

// Format is the version of the manifests that this package writes.
const Format = "1"

// Values of AnnotationHandover.
const (
	handoverReady     = "ready"     // both may run until the parent is Ready
	handoverCreated   = "created"   // they contend for a port of the node
	handoverExclusive = "exclusive" // both must never run at once
)

const secretEnvInline = "inline"

// Annotations of Kubernetes.
const (
	// annotationMirror marks a mirror pod: k8s.io/kubernetes/pkg/kubelet/types.ConfigMirrorAnnotationKey. A static pod
	// that carries it is never run.
	annotationMirror = "kubernetes.io/config.mirror"
	// annotationSource says where the kubelet has a pod from: ConfigSourceAnnotationKey of the same package.
	annotationSource = "kubernetes.io/config.source"
	sourceAPI        = "api"
)
