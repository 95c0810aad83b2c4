// Package kubelet is the agent's view of what runs on this node: what the kubelet manages, what the container runtime
// runs, and what the kubelet mounted for the pods.
//
// # Guarantees
//
//   - Facts are complete: a report replaces the one before.
//   - Each source recovers by itself, for ever, and says Unknown while it can't know.
//   - Nothing is asked while nothing happens, but for a runtime without events and a kubelet that waits for the API server.
//   - One inotify instance serves the whole package; without it, everything goes on, more slowly.
//   - What is watched is not harmed: the runtime's event stream is drained whatever the rest of the agent does, and no
//     handle stays open inside a kubelet's volume.
package kubelet
