package checkpoint

// Situation is what decides over one lineage's checkpoint, reduced to what makes a difference. Every combination of its
// values has a row in the tables of table.go; docs/state-machine.md shows them all.
type Situation struct {
	API       APIWord
	Kubelet   KubeletWord
	Runtime   Runtime
	Parent    ParentWord
	Running   Running
	Trouble   Trouble
	Handover  Handover
	Port      PortWord
	Admission AdmissionWord
}

// APIWord is what the API server's state means for a checkpoint.
type APIWord uint8

const (
	APIQuiet   APIWord = iota // it was not heard since our start, and still may be
	APIAway                   // refusing, failing, lost, or not heard for too long: alike for an activation
	APIRelists                // it serves, and its list of now is not here yet
	APIServes
)

// KubeletWord is what the kubelet's state means for a checkpoint.
type KubeletWord uint8

const (
	KubeletQuiet   KubeletWord = iota // it is not heard, for less than the patience with it
	KubeletNoAPI                      // it has not seen the API server since its own start
	KubeletInSync                     // it tells which pods it manages
	KubeletCantSay                    // it has no socket that tells, or was not heard for too long
)

// ParentWord is what is known of the parent.
type ParentWord uint8

const (
	ParentGone    ParentWord = iota // the API server had no pod of the lineage here, or only ones that are being deleted
	ParentBound                     // it should run here, and the kubelet does not manage it
	ParentOver                      // it Failed or Succeeded
	ParentEvicted                   // the kubelet evicted it
	ParentManaged                   // the kubelet has it in hand
)

// Running is how far the parent has come in the container runtime; each value includes those before it.
type Running uint8

const (
	RunsNothing Running = iota
	RunsSandbox         // it has a READY sandbox
	RunsCreated         // and a container that must run was created in it
	RunsUp              // and every container that must run runs
	RunsReady           // and it is Ready
)

// Trouble is what has lasted for too long.
type Trouble uint8

const (
	NoTrouble       Trouble = iota
	ParentNotBegun          // managed for --stuck-after, and none of its containers was created: an image that can't be pulled
	ParentStuck             // the pod is marked as stuck
	CheckpointStuck         // the active checkpoint does not come up
)

// PortWord is whether another lineage has the better claim to a port of the node.
type PortWord uint8

const (
	PortFree PortWord = iota
	PortTaken
)

// AdmissionWord is whether the checkpoint keeps the kubelet from admitting the parent.
type AdmissionWord uint8

const (
	AdmissionOpen    AdmissionWord = iota
	AdmissionBlocked               // it declares a host port of the parent's, which the kubelet is about to look at, or has rejected
)
