// Package simulation is a model of the world in which checkpoint.Plan decides: a node with its kubelet, container runtime,
// disk and power, and a cluster with its API server, which may live in one of the node's own pods, and its controllers. Only
// tests import it.
//
// The model is deterministic: one seed is one history. Whatever goes wrong in it, goes wrong by Chaos: sources that fall
// silent, events that come late, writes that fail, power cuts, an agent that dies between two actions, roll-outs of revisions
// that crash, an etcd that is restored from a backup or empty. After each step the oracle compares what was decided with what
// the model knows to be true. Calm ends all faults and says which lineages do not run, exactly once, within its bound.
//
// # Guarantees
//
//   - The model shares no decision with the core: it takes over the core's facts and actions, and nothing of Plan.
//   - Time passes only from one event to the next, so that a day in which nothing happens costs nothing.
//
// # What must not be assumed
//
// That a rule of the model is all that Kubernetes does. Each has its source beside it, in Kubernetes 1.37; what the real
// kubelet and runtime do is shown by the end-to-end tests.
package simulation
