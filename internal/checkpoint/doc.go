// Package checkpoint decides. Given what is known about the world and what was decided before, Plan says which
// checkpoints to save, to put before the kubelet, to take away and to remove.
//
// It is pure: no clock, no I/O, no logging, no Kubernetes types. Time comes in as World.Now and goes out as the instant
// at which to plan again.
//
// # Guarantees
//
//   - Plan compares what should be with the disk as last listed and emits only what is missing. A crash, a failed write
//     and somebody else's deletion all heal in the same way, and planning again after applying gives nothing.
//   - Unknown never withdraws and never removes. Only a serving API server that a live LIST has confirmed removes.
//   - The order of actions is the order in which to apply them: saves, activations, withdrawals, removals; in each of
//     them the checkpointer's own lineage last.
//
// # What must not be assumed
//
// That an action succeeds: what failed is emitted again by the next Plan. That events come once, or in order: a World is
// the complete set of facts, not a change.
package checkpoint
