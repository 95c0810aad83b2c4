package checkpoint

import "time"

// Phase is where a lineage's checkpoint stands, in terms of what lies on disk.
type Phase uint8

const (
	Absent   Phase = iota // nothing
	Stored                // the manifest in the inactive directory, its assets complete
	Active                // the same manifest also in the kubelet's static pod directory
	Leaving               // it was active, the manifest is withdrawn, its sandbox is not yet gone
	Removing              // as Leaving or Stored, and kept only until the removal is confirmed
)

func (p Phase) String() string {
	return [...]string{"absent", "stored", "active", "leaving", "removing"}[p]
}

// State is what Plan remembers of a lineage from one call to the next.
type State struct {
	Phase  Phase
	Reason Reason    // why it is in Phase, and stays there
	Up     bool      // whether the runtime, if it answers, shows a pod of the API server's up
	Since  time.Time // since when Reason holds; delays are counted from here

	// Containers is the print of the lineage's containers on which Since rests, where Reason asks that they be quiet.
	Containers string
	// ReadySince is when the present parent, ReadyUID, became Ready.
	ReadySince time.Time
	ReadyUID   UID
	// GoneSince is when a serving API server first told that no pod of the lineage is left, and has told ever since.
	GoneSince time.Time
	// UpSince is since when the pod that is marked as stuck has been up again.
	UpSince time.Time
	// Downtime is of what should be up.
	Downtime Downtime
	// Handed is the last hand-over of a port, until it is known whether the parent made use of it.
	Handed Handed
	// StoppedAt is when the parent's sandbox was last stopped, for the checkpoint's is not gone yet.
	StoppedAt time.Time
	// Ignored is the active manifest that the kubelet makes nothing of.
	Ignored Ignored

	Marks Marks // as they should be on disk
}

// Policy is what the operator chose. Durations of zero are valid and mean at once.
type Policy struct {
	Self Lineage // the checkpointer's own; empty if it has none
	// SelfName is the name of the pod that this process runs in, or is the checkpoint of: its own revision. Empty: none.
	SelfName string

	APITimeout      time.Duration // how long after Start an API server that says nothing is waited for
	KubeletTimeout  time.Duration // how long a kubelet that says nothing is waited for
	Settle          time.Duration // how long a pod's containers must be quiet before a restart of them is ruled out
	KubeletSync     time.Duration // how long a kubelet may take to turn to a serving API server
	StuckAfter      time.Duration // how long a parent that the API server wants here may be down
	HandoverTimeout time.Duration // how long a parent that was handed its port may take to be up
	RejectedAfter   time.Duration // how long the kubelet may take to make something of an active manifest
	KeepPrevious    time.Duration // how long the generation before is kept, unless the new one proves itself earlier
	PromoteAfter    time.Duration // how long a successor must be Ready before its checkpoint replaces the last good one
	Grace           time.Duration // how long a pod must be gone before its checkpoint is removed
	Confirm         time.Duration // how long the API server must still say so after the checkpoint stopped
}

// DefaultPolicy is the one that the documentation describes.
func DefaultPolicy() Policy {
	return Policy{
		APITimeout:      3 * time.Second,
		KubeletTimeout:  5 * time.Second,
		Settle:          2 * time.Second,
		KubeletSync:     15 * time.Second,
		StuckAfter:      2 * time.Minute,
		HandoverTimeout: 30 * time.Second,
		RejectedAfter:   10 * time.Second,
		KeepPrevious:    24 * time.Hour,
		PromoteAfter:    30 * time.Second,
		Grace:           time.Minute,
		Confirm:         15 * time.Second,
	}
}
