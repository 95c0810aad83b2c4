//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/image"
)

const (
	// WitnessImage is a workload that tells about itself; see package witness.
	WitnessImage = "pod-checkpointer/witness:dev"
	// CheckpointerImage is the image that the manifests in deploy/ name.
	CheckpointerImage = "pod-checkpointer/pod-checkpointer:dev"

	pauseImage = "docker.io/pod-checkpointer/pause:dev"
)

const module = "github.com/pod-checkpointer/pod-checkpointer/e2e"

// repository is the root of the source tree, found from the working directory.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "e2e", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", fmt.Errorf("%s isn't inside the repository", start)
		}
	}
}

// buildImagePrograms compiles what goes into the lab's own images.
func buildImagePrograms(ctx context.Context, dir string) error {
	root, err := repository()
	if err != nil {
		return err
	}
	if err := makeDirs(dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/",
		module+"/images/pause", module+"/images/witness")
	cmd.Dir = filepath.Join(root, "e2e")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return checked(cmd)
}

// BuildCheckpointer is a Prepare that builds the checkpointer's program.
func BuildCheckpointer(ctx context.Context) error {
	root, err := repository()
	if err != nil {
		return err
	}
	return checked(exec.CommandContext(ctx, "make", "-C", root, "build"))
}

// ImportCheckpointer gives the node the image that the repository's Dockerfile
// describes. It needs BuildCheckpointer.
func (n *Node) ImportCheckpointer(ctx context.Context) error {
	root, err := repository()
	if err != nil {
		return err
	}
	i, err := image.FromDockerfile(CheckpointerImage, filepath.Join(root, "Dockerfile"), root)
	if err != nil {
		return err
	}
	return n.importImage(ctx, i)
}

// ProgramImage is the name of the image that ImportProgram makes of a program.
func ProgramImage(program string) string { return "pod-checkpointer/" + program + ":dev" }

// ImportProgram gives the node an image of one of the programs that package
// binaries builds, such as the API server.
func (n *Node) ImportProgram(ctx context.Context, program string) error {
	files := map[string]string{"/" + program: binaries.Path(program)}
	return n.ImportImage(ctx, ProgramImage(program), files, "/"+program)
}

// ImportImage gives the node an image of one layer: files maps absolute paths in
// it to files on disk, which must be static programs or data.
func (n *Node) ImportImage(ctx context.Context, name string, files map[string]string, entrypoint ...string) error {
	return n.importImage(ctx, image.Image{Name: name, Files: files, Entrypoint: entrypoint})
}

func (n *Node) importLabImages(ctx context.Context) error {
	programs := filepath.Join(n.machine.run.Dir, "images")
	for name, program := range map[string]string{pauseImage: "pause", WitnessImage: "witness"} {
		if err := n.ImportImage(ctx, name, map[string]string{"/" + program: filepath.Join(programs, program)}, "/"+program); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) importImage(ctx context.Context, i image.Image) error {
	archive := filepath.Join(n.machine.run.Dir, "image.tar")
	if err := i.Write(archive); err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	defer os.Remove(archive)
	if err := checked(exec.CommandContext(ctx, binaries.Path("ctr"), "--namespace=k8s.io", "images", "import", archive)); err != nil {
		return err
	}
	return Wait(ctx, "image "+i.Name, func(ctx context.Context) error { return hasImage(ctx, i.Name) }, n.Containerd)
}

// checked runs a command; its error carries the command's output.
func checked(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
