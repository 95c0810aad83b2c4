// Command kubelets lets the kubelets of other Kubernetes versions read the manifests that we write for them. It builds a
// module for each version in a cache directory: about five minutes the first time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	versions := flag.String("versions", "1.34.4,1.35.4,1.36.3", "versions of Kubernetes")
	pods := flag.Uint64("pods", 20_000, "how many pods are generated for each")
	cases := flag.String("cases", "../../internal/manifest/testdata", "directory of golden cases")
	cache := flag.String("cache", "", "where the modules are built; the user's cache directory by default")
	flag.Parse()
	if err := run(ctx, strings.Split(*versions, ","), *pods, *cases, *cache); err != nil {
		fmt.Fprintln(os.Stderr, "kubelets:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, versions []string, pods uint64, cases, cache string) error {
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		cache = filepath.Join(user, "pod-checkpointer", "kubelets")
	}
	var failures []error
	for _, version := range versions {
		fmt.Printf("Kubernetes %s: building\n", version)
		accept, err := build(ctx, version, filepath.Join(cache, version))
		if err == nil {
			err = check(ctx, accept, version, pods, cases)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("the kubelet of %s: %w", version, err))
		}
	}
	return errors.Join(failures...)
}

// check writes the manifests for a kubelet of this version and lets it read them.
func check(ctx context.Context, accept, version string, pods uint64, cases string) error {
	dir, err := os.MkdirTemp("", "kubelets-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dirs, written, err := write(dir, version, pods, cases)
	if err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, accept, append([]string{generate.NodeName}, dirs...)...).CombinedOutput()
	fmt.Printf("Kubernetes %s, %d manifests:\n%s", version, written, output)
	if err == nil && !strings.HasSuffix(string(output), fmt.Sprintf("%d accepted, 0 rejected\n", written)) {
		return errors.New("not every manifest was seen")
	}
	return err
}
