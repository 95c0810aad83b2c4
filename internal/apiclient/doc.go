// Package apiclient is the agent's view of the API server: the pods of this node, and how the server answers.
//
// # Guarantees
//
//   - Facts are complete: the pods are all that ask for a checkpoint, as the server told last; the state is that of its
//     last answer.
//   - Client never gives up, and asks nothing while nothing happens: one watch on one connection, and a ping while that
//     is silent.
//   - Each time that the server serves again, the pods are listed anew by a consistent read.
//   - What is replaced on disk, the kubeconfig or a certificate that it names, is used: at once while the server does
//     not serve, else when the watch in hand ends, within ten minutes.
//
// # What must not be assumed
//
// That Facts.Pods is the server's answer of now: Facts.Current tells. That a pod which is absent there is gone, or that a
// server which serves could answer a new question: one that has lost its etcd keeps the watch open, and is silent
// (measured). Only Client.LivePods is a consistent read.
package apiclient
