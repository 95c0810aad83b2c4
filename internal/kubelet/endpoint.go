package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// endpoints are the sockets of containerd, CRI-O, k3s and k0s.
var endpoints = []string{
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/k3s/containerd/containerd.sock",
	"/run/k0s/containerd.sock",
}

// FindRuntimeEndpoint is the first of the usual sockets that exists, as unix:///path.
func FindRuntimeEndpoint() (string, error) { return findEndpoint("/") }

func findEndpoint(root string) (string, error) {
	for _, path := range endpoints {
		path = filepath.Join(root, path)
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return "unix://" + path, nil
		}
	}
	return "", fmt.Errorf("no container runtime found: none of %s is a socket; --container-runtime-endpoint names another",
		strings.Join(endpoints, ", "))
}
