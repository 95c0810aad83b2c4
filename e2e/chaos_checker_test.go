//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

const (
	// handoverWindow is for how long two copies of a pod may run side by side, counted while everything that has to
	// end one of them is whole.
	handoverWindow = 90 * time.Second
	// restoreWindow is for how long a stored manifest may be missing while the agent can run.
	restoreWindow = 60 * time.Second
)

const foreignManifest = lab.Manifests + "/foreign.yaml"

var foreign = []byte("# Somebody else's: not a pod, so that the kubelet leaves it alone too.\napiVersion: v1\nkind: List\nitems: []\n")

func writeForeign() error { return os.WriteFile(foreignManifest, foreign, 0o640) }

// check looks on from outside until ctx ends. It shares no code with what it checks.
func (c *chaos) check(ctx context.Context) {
	doubled, missing := make(map[string]time.Time), make(map[string]time.Time)
	for ctx.Err() == nil && !c.t.Failed() {
		c.looks++
		c.checkFiles()
		c.checkStored(missing)
		c.checkCopies(ctx, doubled)
		timer := time.NewTimer(500 * time.Millisecond)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// checkFiles: foreign files are as they were, ours are private, and no secret is in any of them or in the log.
func (c *chaos) checkFiles() {
	if now, err := os.ReadFile(foreignManifest); err != nil || !bytes.Equal(now, foreign) {
		c.t.Errorf("somebody else's manifest was touched: %q, %v", now, err)
	}
	secret := []byte("it's $(A) secret")
	encoded := []byte(base64.StdEncoding.EncodeToString(secret)[:20])
	var paths []string
	for _, pattern := range []string{lab.Manifests + "/" + site.Namespace + "_*", site.InactiveDir + "/*", lab.Logs + "/pods/" + site.Namespace + "_pod-checkpointer-*/checkpointer/*.log"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			c.t.Error(err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // gone, or not whole at the moment: see checkStored
		}
		if bytes.Contains(data, secret) || bytes.Contains(data, encoded) {
			c.t.Errorf("the secret is in %s", path)
		}
		if info, err := os.Stat(path); err == nil && !strings.HasPrefix(path, lab.Logs) && len(data) > 2 && info.Mode().Perm()&0o077 != 0 && c.calmFor("agent") > restoreWindow {
			c.t.Errorf("%s has the mode %v", path, info.Mode())
		}
	}
}

// checkStored: nobody asked for a removal, so a checkpoint of each is on disk at any time.
func (c *chaos) checkStored(missing map[string]time.Time) {
	stored, err := c.manifests(site.InactiveDir)
	if err != nil {
		c.t.Error(err)
	}
	for _, of := range []string{"web", "gateway", "pod-checkpointer"} {
		if c.lasts(missing, of, len(stored[of]) == 0, restoreWindow, "agent", "containerd", "kubelet") {
			c.t.Errorf("no checkpoint of %s is stored", of)
		}
	}
}

// checkCopies: no pod runs twice for longer than a hand-over takes.
func (c *chaos) checkCopies(ctx context.Context, doubled map[string]time.Time) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	copies, err := c.copies(ctx)
	if err != nil {
		clear(doubled) // containerd is what is broken now
		return
	}
	for _, of := range []string{"web", "gateway"} {
		if c.lasts(doubled, of, len(copies[of]) > 1, handoverWindow, api, "agent", "containerd", "kubelet", "pods") {
			c.t.Errorf("%s runs as %v", of, copies[of])
		}
	}
}

// lasts says whether a bad state has lasted for the whole window, while none of the targets was broken.
func (c *chaos) lasts(since map[string]time.Time, of string, bad bool, window time.Duration, targets ...string) bool {
	if !bad {
		delete(since, of)
		return false
	}
	if since[of].IsZero() {
		since[of] = time.Now()
	}
	return min(time.Since(since[of]), c.calmFor(targets...)) > window
}

// copies are the names of the pods in which a container of each DaemonSet runs.
func (s *testSite) copies(ctx context.Context) (map[string][]string, error) {
	containers, err := s.Containers(ctx)
	copies := make(map[string][]string)
	for _, container := range containers {
		if container.State == runtime.ContainerState_CONTAINER_RUNNING && container.Labels["io.kubernetes.container.name"] == "witness" {
			pod := container.Labels["io.kubernetes.pod.name"]
			of, _, _ := strings.Cut(pod, "-")
			copies[of] = append(copies[of], pod)
		}
	}
	return copies, err
}

// manifests are the names of our files in a directory, by the DaemonSet that they are of.
func (c *chaos) manifests(dir string) (map[string][]string, error) {
	paths, err := filepath.Glob(dir + "/" + site.Namespace + "_*.json")
	found := make(map[string][]string)
	for _, path := range paths {
		name := strings.TrimPrefix(filepath.Base(path), site.Namespace+"_")
		if i := strings.LastIndex(name, "-"); i > 0 {
			found[name[:i]] = append(found[name[:i]], name)
		}
	}
	return found, err
}

// leftovers is an error if a temporary file is left in our directories.
func (c *chaos) leftovers() (err error) {
	for _, dir := range []string{lab.Manifests, site.InactiveDir, site.AssetsDir} {
		entries, readErr := os.ReadDir(dir)
		err = errors.Join(err, readErr)
		if i := slices.IndexFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }); i >= 0 {
			err = errors.Join(err, fmt.Errorf("%s is left in %s", entries[i].Name(), dir))
		}
	}
	return err
}
