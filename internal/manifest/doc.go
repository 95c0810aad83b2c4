// Package manifest makes checkpoints and keeps them on disk.
//
// Convert turns a pod of the API server into a static pod that the kubelet starts without one, or says why it can't. It
// is pure: no I/O, no clock, no logging. What becomes of each field is decided in the tables of the fields_*.go files,
// and docs/fields.md is made of them.
//
// Store keeps the manifests and the copies of the pods' volumes in their directories.
package manifest
