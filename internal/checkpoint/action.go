package checkpoint

// Kind is what an Action does.
type Kind uint8

const (
	Mark        Kind = iota // write Action.Marks of the lineage
	Save                    // write the assets and the stored manifest of the parent Pod with Action.UID
	Restore                 // write the stored manifest again
	StopSandbox             // stop the sandbox Action.Sandbox in the container runtime
	Activate                // write the stored manifest's bytes to the static pod directory
	Retry                   // write the active manifest with another nonce, so that a kubelet which rejected it looks again
	Withdraw                // remove the active manifest
	Kick                    // remove the exited containers of Action.Sandbox and stop it, so that the kubelet starts the pod at once
	Confirm                 // ask the API server by a live LIST whether the lineage is gone, for World.Confirmed
	Remove                  // remove the stored manifest, then the assets
	Prune                   // remove generations of assets that no sandbox can need
	StepDown                // give the lead to the copy of another revision that stands by
)

func (k Kind) String() string {
	return [...]string{
		"mark", "save", "restore", "stop-sandbox", "activate", "retry", "withdraw", "kick", "confirm", "remove", "prune", "step-down",
	}[k]
}

// Action is one effect. Doing one again that was done already is harmless.
type Action struct {
	Kind            Kind
	Lineage         Lineage
	Namespace, Name string // of the checkpoint: its parent's
	Previous        bool   // it is the generation before; see Checkpoint.Previous
	UID             UID    // of the parent; of Save only
	Sandbox         string // its ID; of StopSandbox and Kick only
	Marks           Marks  // of Mark only
	Reason          Reason
}
