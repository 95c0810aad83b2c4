package checkpoint

// Kind is what an Action does.
type Kind uint8

const (
	Save        Kind = iota // write the assets and the stored manifest of the parent Pod with Action.UID
	Restore                 // write the stored manifest again
	StopSandbox             // stop the sandbox Action.Sandbox in the container runtime
	Activate                // write the stored manifest's bytes to the static pod directory
	Withdraw                // remove the active manifest
	Confirm                 // ask the API server by a live LIST whether the lineage is gone, for World.Confirmed
	Remove                  // remove the stored manifest, then the assets
	Prune                   // remove generations of assets that no sandbox can need
)

func (k Kind) String() string {
	return [...]string{"save", "restore", "stop-sandbox", "activate", "withdraw", "confirm", "remove", "prune"}[k]
}

// Action is one effect. Doing one again that was done already is harmless.
type Action struct {
	Kind            Kind
	Lineage         Lineage
	Namespace, Name string // of the checkpoint: its parent's
	Previous        bool   // it is the generation before; see Checkpoint.Previous
	UID             UID    // of the parent; of Save only
	Sandbox         string // its ID; of StopSandbox only
	Reason          Reason
}
