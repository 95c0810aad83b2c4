package kubelet

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckDir(t *testing.T) {
	dir := t.TempDir()
	err := CheckDir(dir)
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "--kubelet-dir") {
		t.Errorf("error %v, want one that names the directory and the flag", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "pods"), nil, 0o600))
	if CheckDir(dir) == nil {
		t.Error("a file was taken for the directory of the pods")
	}
	must(t, os.Remove(filepath.Join(dir, "pods")))
	must(t, os.Mkdir(filepath.Join(dir, "pods"), 0o750))
	must(t, CheckDir(dir))
}

func TestFindRuntimeEndpoint(t *testing.T) {
	root := shortDir(t)
	_, err := findEndpoint(root)
	if err == nil || !strings.Contains(err.Error(), "/run/crio/crio.sock") || !strings.Contains(err.Error(), "--container-runtime-endpoint") {
		t.Errorf("error %v, want one that names the places and the flag", err)
	}
	for _, path := range []string{"/run/k3s/containerd/containerd.sock", "/run/crio/crio.sock"} {
		path = filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		listener, err := net.Listen("unix", path)
		must(t, err)
		defer listener.Close()
		if got, err := findEndpoint(root); err != nil || got != "unix://"+path {
			t.Errorf("found %q, %v, want %s", got, err, path)
		}
	}
	must(t, os.MkdirAll(filepath.Join(root, "run/containerd"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "run/containerd/containerd.sock"), nil, 0o600)) // no socket
	if got, _ := findEndpoint(root); !strings.HasSuffix(got, "/run/crio/crio.sock") {
		t.Errorf("found %q, want CRI-O's", got)
	}
}
