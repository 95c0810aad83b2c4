package checkpoint

// Reason is why a lineage is where it is: the same word in the log, in status and in the documentation.
type Reason string

// Why a stored checkpoint is not activated.
const (
	ReasonNoCheckpoint   Reason = "no-checkpoint"   // nothing is stored yet
	ReasonParentUp       Reason = "parent-up"       // every container of the parent runs
	ReasonParentManaged  Reason = "parent-managed"  // the kubelet runs the parent and restarts what fails
	ReasonParentGone     Reason = "parent-gone"     // the API server has no such pod here: deliberate
	ReasonParentEvicted  Reason = "parent-evicted"  // the kubelet evicted it: its own choice
	ReasonRuntimeUnknown Reason = "runtime-unknown" // the container runtime does not answer: nothing could start
	ReasonAPIUnknown     Reason = "api-unknown"     // the API server was not heard yet
	ReasonAPIListing     Reason = "api-listing"     // the API server serves, its list of pods is not here yet
	ReasonStillRunning   Reason = "still-running"   // the parent's sandbox is there, and two copies must never run at once
	ReasonPortTaken      Reason = "port-taken"      // another lineage has the better claim to a port of the node; also withdraws
	ReasonKubeletUnknown Reason = "kubelet-unknown" // the kubelet is not heard, for less than --kubelet-timeout
)

// Why a stored checkpoint is activated, each after the delay that the policy gives it.
const (
	ReasonKubeletRestarted Reason = "kubelet-restarted" // no API server since the kubelet started: a power cycle, above all
	ReasonKubeletSyncing   Reason = "kubelet-syncing"   // the same, but the API server serves: the kubelet is about to take the parent
	ReasonParentUnmanaged  Reason = "parent-unmanaged"  // no API server, and the kubelet does not manage the parent
	ReasonParentDown       Reason = "parent-down"       // no API server, the kubelet can't tell, and the parent is down
	ReasonParentNotRun     Reason = "parent-not-run"    // the API server wants the parent here, and the kubelet does not run it
	ReasonParentNotBegun   Reason = "parent-not-begun"  // the kubelet manages the parent, and has created none of its containers for long
	ReasonParentStuck      Reason = "parent-stuck"      // the kubelet manages this pod in vain; also keeps it active until another takes its place
	ReasonSelf             Reason = "self"              // our own manifest is always active, so that we start at boot
)

// Why an active checkpoint stays active.
const (
	ReasonParentAbsent    Reason = "parent-absent"    // no live parent that the kubelet manages
	ReasonParentStarting  Reason = "parent-starting"  // managed, but none of its containers is created
	ReasonParentNotUp     Reason = "parent-not-up"    // managed, and not every container of it runs
	ReasonParentNotReady  Reason = "parent-not-ready" // up, but not Ready; withdrawn when that lasts
	ReasonLastCopy        Reason = "last-copy"        // the stored manifest is lost, and can't be restored yet
	ReasonCheckpointStuck Reason = "checkpoint-stuck" // it does not come up, and there is no other generation to try
)

// Why a checkpoint is saved, restored, withdrawn or removed.
const (
	ReasonFirst            Reason = "first-checkpoint"  // every container of the parent runs, and nothing was stored
	ReasonParentChanged    Reason = "parent-changed"    // what is stored is not the parent as it is now
	ReasonAssetsChanged    Reason = "assets-changed"    // a Secret, a ConfigMap or a token of the parent has changed
	ReasonFileLost         Reason = "file-lost"         // somebody else deleted or altered a file of ours
	ReasonParentCreated    Reason = "parent-created"    // the parent's first container is created: it needs the port
	ReasonParentAppeared   Reason = "parent-appeared"   // the parent's sandbox is there, and two copies must never run at once
	ReasonParentReady      Reason = "parent-ready"      // the parent does the work again
	ReasonParentBlocked    Reason = "parent-blocked"    // the kubelet admits no parent whose host port the checkpoint declares; also holds it
	ReasonSucceeded        Reason = "succeeded"         // a successor's checkpoint is stored
	ReasonFallback         Reason = "fallback"          // it does not come up: the generation before is tried
	ReasonIgnored          Reason = "ignored"           // the kubelet made nothing of the manifest: it rejects once and looks again when that changes
	ReasonPortWasHeld      Reason = "port-was-held"     // the parent failed while the checkpoint still held its port
	ReasonMarks            Reason = "marks"             // what must be known after a restart has changed
	ReasonNewRevision      Reason = "new-revision"      // a newer revision of the checkpointer leads from now on
	ReasonRevisionFailed   Reason = "revision-failed"   // the revision that was given the lead crashed with it
	ReasonOrphan           Reason = "orphan"            // a sandbox that nobody manages holds the ports that are needed
	ReasonOutdated         Reason = "outdated"          // generations of assets that no sandbox needs any more
	ReasonRemovalPending   Reason = "removal-pending"   // gone for the whole grace; a live confirmation is awaited
	ReasonRemovalStopping  Reason = "removal-stopping"  // gone, confirmed and withdrawn; its sandbox still stops
	ReasonRemovalConfirmed Reason = "removal-confirmed" // stopped; removed once the API server has kept saying so
)
