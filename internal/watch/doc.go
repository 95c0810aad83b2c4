// Package watch is the agent's one goroutine. Sources report complete facts into mailboxes; Loop folds them into one
// World, lets internal/checkpoint plan, and applies what it says.
//
// # Guarantees
//
//   - No source ever waits for the loop: a mailbox holds the latest facts, and newer ones replace or join them.
//   - No decision is taken here, and none in a source.
//   - An action that fails is tried again with growing delay, per lineage and for ever; the other lineages go on.
//
// # What must not be assumed
//
// That each event is seen: only that the last facts are.
package watch
