package checkpoint

import "time"

// UID is a pod's UID as the API server, the kubelet and the container runtime know it.
type UID string

// Lineage names what succeeds itself on this node: a DaemonSet's pods, a Deployment's pods, or one pod by its name.
type Lineage string

// API is how the API server answered our own request for this node's pods. The zero value is Unknown.
type API uint8

const (
	APIUnknown  API = iota // not asked yet
	APIServing             // 2xx; the only state that may lead to a removal
	APIRefusing            // it answers, but not to us: 401, 403, a certificate that is not accepted
	APIFailing             // 429, 5xx
	APILost                // no answer
)

// Kubelet is what the kubelet's local socket said. The zero value is Unknown.
type Kubelet uint8

const (
	KubeletUnknown  Kubelet = iota // not asked yet, or the connection broke
	KubeletUnsynced                // it has not seen the API server since its own start, so it manages no API pod
	KubeletSynced                  // World.Managed is the set of pods that it manages
	KubeletAbsent                  // this kubelet has no socket that tells
)

// Runtime is whether the container runtime's last list is current. The zero value is Unknown.
type Runtime uint8

const (
	RuntimeUnknown Runtime = iota
	RuntimeKnown           // World.Sandboxes is complete
)

// World is everything that is known at one instant. It is complete: what it does not hold is not there, where the
// state of the source says that the source knows; and not known where it says Unknown.
type World struct {
	Now   time.Time
	Start time.Time // of this process

	API        API
	APISince   time.Time // when API took its value
	APICurrent bool      // Parents is the API server's answer of now: listed since it last began to serve, and watched

	// Confirmed holds, for a lineage that seems gone, when a live and consistent LIST last showed no pod of it while
	// this node's own Node object was the one that we know.
	Confirmed map[Lineage]time.Time

	Kubelet      Kubelet
	KubeletSince time.Time
	Managed      map[UID]Managed // the pods that it runs from the API; meaningful while Kubelet is Synced
	Evicted      map[UID]bool    // the pods that it says it evicted; meaningful while Kubelet is Synced

	Runtime   Runtime
	Sandboxes []Sandbox // meaningful while Runtime is Known

	Parents []Parent // the last that the API server told of this node's pods
	Disk    Disk
}

// Managed is a pod that the kubelet runs for the API server: it lists it, not ended and not being deleted.
type Managed struct {
	Ready bool // by the kubelet's own status, which a power cut can't leave stale as it does the API server's
}

// Parent is a pod from the API server that asks for a checkpoint.
type Parent struct {
	UID             UID
	Namespace, Name string
	Lineage         Lineage
	Created         time.Time
	Deleting        bool // it has a deletion timestamp
	Phase           PodPhase
	Ready           bool     // as the API server last told; see Managed.Ready
	Containers      []string // names of the containers that must run for the pod to be up: regular and sidecar
	Handover        Handover
	Ports           []Port // the node's ports that it says it takes
	Rendering       Rendering
	Manifest        string // digest of the manifest that a checkpoint of it would have now; set while Rendering is Rendered
	Digest          string // the same of manifest and assets together
}

// Port is a port of the node, as "80/TCP" or "127.0.0.1:53/UDP".
type Port string

// PodPhase is the part of a pod's phase that decides.
type PodPhase uint8

const (
	PodLive    PodPhase = iota // Pending or Running
	PodEnded                   // Failed or Succeeded
	PodEvicted                 // Failed because the kubelet evicted it: the kubelet chose so
)

// Rendering is what became of turning a parent into a manifest. The zero value is Unknown.
type Rendering uint8

const (
	RenderingUnknown Rendering = iota // what it references could not be read yet
	Refused                           // it can't be checkpointed; an earlier checkpoint stays
	Rendered
)

// Handover is how a checkpoint makes room for its parent.
type Handover uint8

const (
	HandoverReady     Handover = iota // both may run for a moment: wait until the parent is Ready. No gap
	HandoverShared                    // they share a host port, so that either may answer a probe of the other: wait until the parent has been Ready for a while. No gap
	HandoverCreated                   // they contend for a host port: withdraw when the parent's first container is created
	HandoverExclusive                 // both must never run at once: withdraw when the parent's sandbox appears, and hold it up
)

// Sandbox is a pod sandbox as the container runtime lists it.
type Sandbox struct {
	ID           string
	UID          UID // of a static pod: the kubelet's hash, unknown to everyone else
	Namespace    string
	Name         string
	CheckpointOf string // the parent's name if this is a checkpoint's sandbox, else empty: our annotation on a static pod
	FromFile     bool   // the kubelet got the pod from its static pod directory
	Ready        bool
	Created      time.Time
	Containers   []Container
}

// Container is a container of one Sandbox.
type Container struct {
	Name  string
	State ContainerState
}

// ContainerState mirrors the CRI's. The zero value is Unknown.
type ContainerState uint8

const (
	ContainerUnknown ContainerState = iota
	ContainerCreated
	ContainerRunning
	ContainerExited
)

// Disk is what the store found in its directories.
type Disk struct {
	Known       bool
	Checkpoints []Checkpoint
	Marks       map[Lineage]Marks
}

// Marks is what must be known of a lineage after a restart too.
type Marks struct {
	Stuck       UID    `json:"stuck,omitempty"`       // the pod that the kubelet manages in vain; of the checkpointer: the revision that can't lead
	Failed      string `json:"failed,omitempty"`      // Checkpoint.Manifest of the one that did not come up
	Proven      string `json:"proven,omitempty"`      // Checkpoint.Manifest of the one that was up as a checkpoint
	Removing    bool   `json:"removing,omitempty"`    // it was withdrawn for its removal, which is not confirmed yet
	LoadBearing bool   `json:"loadBearing,omitempty"` // the API server went away when it was: it may have lived on it
	HandedTo    UID    `json:"handedTo,omitempty"`    // of the checkpointer: the revision that was given the lead last
}

// Checkpoint is one checkpoint on disk: the manifest of one parent and its assets.
type Checkpoint struct {
	Namespace, Name string // the parent's
	Lineage         Lineage
	ParentUID       UID
	Containers      []string // as Parent.Containers
	Handover        Handover
	HostPorts       bool      // it takes ports of the node: host network, or host ports that were kept
	Ports           []Port    // those that it says it takes; as Parent.Ports
	DeclaresPorts   bool      // in its manifest: the kubelet admits no other pod that declares one of them
	SavedAt         time.Time // when the stored manifest was written
	Previous        bool      // the generation before of a pod that has succeeded itself under the same name
	Manifest        string    // as Parent.Manifest
	Digest          string    // as Parent.Digest
	Outdated        bool      // asset generations lie there that only a running sandbox may still need
	Stored          File
	Active          File
}

// File is the state of one manifest on disk beside what we last wrote there.
type File uint8

const (
	Missing File = iota
	Altered      // there, but not with our content
	Intact
)

func (a API) String() string {
	return [...]string{"unknown", "serving", "refusing", "failing", "lost"}[a]
}

func (k Kubelet) String() string {
	return [...]string{"unknown", "unsynced", "synced", "absent"}[k]
}

func (r Runtime) String() string { return [...]string{"unknown", "known"}[r] }

func (h Handover) String() string { return [...]string{"ready", "shared", "created", "exclusive"}[h] }
