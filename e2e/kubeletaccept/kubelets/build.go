package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/kubelet"
)

//go:embed source
var source embed.FS

// build makes a module in dir that is built with a version of Kubernetes, and returns its program.
func build(ctx context.Context, version, dir string) (program string, err error) {
	minor := version[:strings.LastIndex(version, ".")]
	start, err := source.ReadFile("source/" + minor + ".go.txt")
	if err != nil {
		return "", fmt.Errorf("how to start the file source of %s is not known: %w", minor, err)
	}
	command, err := source.ReadFile("source/main.go.txt")
	if err != nil {
		return "", err
	}
	goMod, err := module(ctx, version)
	if err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{
		"go.mod": goMod, "main.go": command, "kubelet/kubelet.go": kubelet.Code, "kubelet/source.go": start,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", "accept", "."}} {
		if _, err := goTool(ctx, dir, args...); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "accept"), nil
}

var staged = regexp.MustCompile(`(?m)^\s*(k8s\.io/\S+) => \./staging/`)

// module is the go.mod of such a module. k8s.io/kubernetes names its staging modules by local replacements, which don't
// count outside of it.
func module(ctx context.Context, version string) ([]byte, error) {
	output, err := goTool(ctx, "", "mod", "download", "-json", "k8s.io/kubernetes@v"+version)
	if err != nil {
		return nil, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(output, &downloaded); err != nil {
		return nil, err
	}
	kubernetes, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return nil, err
	}
	var goMod bytes.Buffer
	fmt.Fprintf(&goMod, "module accept\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n\nreplace (\n", version)
	for _, match := range staged.FindAllSubmatch(kubernetes, -1) {
		fmt.Fprintf(&goMod, "\t%s => %s v0.%s\n", match[1], match[1], strings.TrimPrefix(version, "1."))
	}
	goMod.WriteString(")\n")
	return goMod.Bytes(), nil
}

func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return output, nil
}
