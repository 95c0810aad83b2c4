package image

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const labelledVersion = "org.opencontainers.image.version"

// TestTwoBuildsAreOne: `make image` in two places, with two umasks, makes the same bytes.
func TestTwoBuildsAreOne(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) {
			onlyInAllIf(t, architecture != runtime.GOARCH)
			first, second := makeImage(t, architecture, 0o022), makeImage(t, architecture, 0o077)
			a, b := digest(t, first), digest(t, second)
			if a != b {
				t.Errorf("one has the digest %x, the other %x", a, b)
			}
			if c := configOf(t, first); c.Architecture != architecture || c.OS != "linux" || c.Config.Labels[labelledVersion] != "v0" {
				t.Errorf("the image says of itself %+v", c)
			}
		})
	}
}

// TestArm64Runs has an emulator run the program of the image.
func TestArm64Runs(t *testing.T) {
	onlyInAllIf(t, true)
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Fatalf("it needs Debian's qemu-user-static: %v", err)
	}
	program := filepath.Join(t.TempDir(), "checkpointer")
	archive := untar(t, makeImage(t, "arm64", 0o022))
	layer := filepath.Join(t.TempDir(), "layer.tar")
	for name, data := range archive {
		if strings.HasSuffix(name, "/layer.tar") {
			write(t, layer, data)
		}
	}
	write(t, program, untar(t, layer)["checkpointer"])
	pod := filepath.Join(t.TempDir(), "pod.yaml")
	write(t, pod, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: kube-system}\nspec: {containers: [{name: web, image: web}]}\n"))
	for want, args := range map[string][]string{
		"v0": {"version"},
		"checkpointer.alpha.coreos.com/checkpoint-of": {"render", "-f", pod},
	} {
		out, err := exec.CommandContext(t.Context(), emulator, append([]string{program}, args...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, without %q in\n%s", args, err, want, out)
		}
	}
}

// onlyInAllIf leaves what compiles everything for another machine to make e2e-all.
func onlyInAllIf(t *testing.T, otherMachine bool) {
	t.Helper()
	if otherMachine && os.Getenv("E2E_ALL") == "" {
		t.Skip("NOT RUN: it is long, and for make e2e-all")
	}
}

// makeImage runs `make image` in a copy of the sources and is the archive's path.
func makeImage(t *testing.T, architecture string, umask int) (archive string) {
	t.Helper()
	defer syscall.Umask(syscall.Umask(umask))
	dir := t.TempDir()
	run(t.Context(), t, "cp", "-r", "../../Makefile", "../../Dockerfile", "../../go.mod", "../../go.sum", "../../cmd", "../../internal", "../../e2e", dir)
	run(t.Context(), t, "make", "-C", dir, "image", "ARCH="+architecture, "VERSION=v0", "REVISION=none")
	return filepath.Join(dir, "bin", "image.tar")
}

func run(ctx context.Context, t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func digest(t *testing.T, archive string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// configOf is the configuration of the one image in an archive.
func configOf(t *testing.T, archive string) (c config) {
	t.Helper()
	files := untar(t, archive)
	var manifests []manifest
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(files[manifests[0].Config], &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}
