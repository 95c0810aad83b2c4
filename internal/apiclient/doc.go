// Package apiclient is the agent's view of the API server: the pods of this node, and how the server answers.
//
// # Guarantees
//
//   - Facts are complete: the pods are all that the server told last, the state is that of its last answer.
//   - Client never gives up, and asks nothing while nothing happens: one watch, one connection.
//
// # What must not be assumed
//
// That Facts.Pods is the server's answer of now: Facts.Current tells. That a pod which is absent there is gone: only
// Client.LivePods is a consistent read.
package apiclient
