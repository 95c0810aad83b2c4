package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// kubeletReads lists the static pod directory as k8s.io/kubernetes/pkg/kubelet/config/file.go does, and says which image
// the one pod in it has; empty if there is no pod.
func kubeletReads(dir string) (image string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // withdrawn since it was listed
		}
		if err != nil {
			return "", err
		}
		var pod corev1.Pod
		if err := json.Unmarshal(data, &pod); err != nil {
			return "", fmt.Errorf("torn: %q: %w", data, err)
		}
		if pod.Kind != "Pod" || len(pod.Spec.Containers) != 1 || image != "" {
			return "", fmt.Errorf("not one whole pod: %q", data)
		}
		image = pod.Spec.Containers[0].Image
	}
	return image, nil
}

// reading runs read at full speed while write runs, and returns how often it did.
func reading(t *testing.T, read func() error, write func()) (reads int) {
	t.Helper()
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := read(); err != nil {
				t.Error(err)
				return
			}
			reads++
		}
	})
	write()
	close(done)
	wait.Wait()
	return reads
}

// The kubelet, reading at full speed during 10,000 updates, never sees a torn, an empty or a second manifest, nor goes
// back to an older one; nor none, while the checkpoint stays active.
func TestKubeletReadsDuringUpdates(t *testing.T) {
	n := newNodeIn(t, memoryDir(t))
	n.restart()
	manifest := func(version int) []byte { // without volumes, and of changing length
		data := strings.ReplaceAll(string(n.manifest(strconv.Itoa(version))), n.dirs.Assets, "/elsewhere")
		return append([]byte(data), strings.Repeat(" ", version%7000)...)
	}
	must(t, n.store.Save(manifest(0), new(Snapshot)))
	n.activate()
	last := 0
	reads := reading(t, func() error {
		image, err := kubeletReads(n.dirs.Manifests)
		if err != nil {
			return err
		}
		version, err := strconv.Atoi(image)
		if err != nil || version < last {
			return fmt.Errorf("after version %d: %q", last, image)
		}
		last = version
		return nil
	}, func() {
		for version := 1; version <= 10_000/slowdown && !t.Failed(); version++ {
			must(t, n.store.Save(manifest(version), new(Snapshot)))
			n.activate()
		}
	})
	t.Logf("%d reads, up to version %d", reads, last)
	if reads < 1000/slowdown || last < 9000/slowdown {
		t.Error("the reader hardly ran: this test saw little")
	}
}

// The same with activations and withdrawals, and with somebody who damages the file.
func TestKubeletReadsDuringActivations(t *testing.T) {
	n := newNodeIn(t, memoryDir(t))
	n.restart()
	must(t, n.store.Save([]byte(strings.ReplaceAll(string(n.manifest("v1")), n.dirs.Assets, "/elsewhere")), new(Snapshot)))
	seen := make(map[string]int)
	reading(t, func() error {
		image, err := kubeletReads(n.dirs.Manifests)
		seen[image]++
		return err
	}, func() {
		for range 2000 {
			n.activate()
			must(t, n.store.Withdraw(web))
		}
	})
	if len(seen) != 2 || seen[""] < 10 || seen["v1"] < 10 {
		t.Errorf("seen: %v", seen)
	}
}

// A container that reads a volume during updates, as Kubernetes documents it (through ..data, once), sees files of one
// version; each file by itself is always whole; and what is linked is always there.
func TestContainerReadsDuringRotations(t *testing.T) {
	n := newNodeIn(t, memoryDir(t))
	rotate := func(version int) {
		text := strings.Repeat(strconv.Itoa(version)+" ", 500+version%500)
		files := map[string]string{"a": text, "b/c": text}
		if version%2 == 0 {
			files["even"] = text
		}
		n.mount("config", "kubernetes.io~configmap", files)
	}
	rotate(0)
	n.mount("token", "kubernetes.io~projected", nil)
	n.restart()
	n.save("v1")
	read := func(name string) (version string, err error) {
		data, err := os.ReadFile(n.asset(name))
		words := strings.Fields(string(data))
		if err != nil || len(words) == 0 || strings.Repeat(words[0]+" ", len(words)) != string(data) {
			return "", fmt.Errorf("%s: %q, %w", name, data, err)
		}
		return words[0], nil
	}
	versions := make(map[string]bool)
	reads := reading(t, func() error {
		generation, err := os.Readlink(n.asset("config/..data"))
		if err != nil {
			return err
		}
		a, errA := read("config/" + generation + "/a")
		c, errC := read("config/" + generation + "/b/c")
		_, errLink := read("config/a")
		_, errSub := read("config/b/c")
		versions[a] = true
		if a != c {
			errC = errors.Join(errC, fmt.Errorf("a mix of %s and %s", a, c))
		}
		return errors.Join(errA, errC, errLink, errSub)
	}, func() {
		for version := 1; version <= 1000/slowdown && !t.Failed(); version++ {
			rotate(version)
			n.save("v1")
		}
	})
	t.Logf("%d reads of %d versions", reads, len(versions))
	if len(versions) < 100/slowdown {
		t.Error("the reader hardly ran: this test saw little")
	}
}
