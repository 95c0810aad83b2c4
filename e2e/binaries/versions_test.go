package binaries

import "testing"

func TestContainerdBefore2IsAnotherModule(t *testing.T) {
	for version, module := range map[string]string{
		"":        "github.com/containerd/containerd/v2",
		"v1.7.35": "github.com/containerd/containerd",
	} {
		t.Setenv("CONTAINERD_VERSION", version)
		for _, s := range sources() {
			if s.name == "containerd" && s.module != module {
				t.Errorf("containerd %q is of %s, want %s", version, s.module, module)
			}
		}
	}
}
