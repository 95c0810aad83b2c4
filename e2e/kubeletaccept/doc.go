// Package kubeletaccept holds the manifests that internal/manifest makes to the code of the kubelet that reads them. It
// is a module of its own, so that the product does not depend on all of Kubernetes.
package kubeletaccept
