//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestDisk is what the checkpointer and the kubelet do to each other's files, and what others do to the checkpointer's.
func TestDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	s := newSite(ctx, t, quickSync)
	s.inOrder(ctx, []part{
		{"damaged assets are back at once", damagedAssets},
		{"a foreign manifest of the same pod is told", foreignOfTheSamePod},
		{"a disk is mounted over a directory", mountedOver},
		{"volumes of deleted pods are unmounted", deletedParents},
		{"and in the checkpointer too", unmountedEverywhere},
		{"system calls of a save and an activation", tracedSave},
	})
}

func damagedAssets(ctx context.Context, s *testSite) {
	file := filepath.Join(site.Assets(s.Web), "keys", "in", "password")
	want, err := os.ReadFile(file)
	s.step("web's copy of the password is there", err)
	for _, damage := range []struct {
		how string
		do  func() error
	}{
		{"overwritten", func() error { return os.WriteFile(file, []byte("forged"), 0o600) }},
		{"deleted", func() error { return os.Remove(file) }},
		{"taken away with everything", func() error { return os.Rename(site.Assets(s.Web), filepath.Dir(site.AssetsDir)+"/taken-away") }}, // not deleted: it comes back meanwhile
	} {
		begin := time.Now()
		s.step(damage.how, damage.do())
		took, err := restored(file, want, begin)
		s.step(fmt.Sprintf("restored %.1f ms after it was %s", float64(took.Microseconds())/1000, damage.how), err)
		if took > time.Second {
			s.t.Errorf("%s: restored after %v, want a second at most", damage.how, took)
		}
		s.step("the next damage is watched for", site.Soon(ctx, "a quiet disk", func(context.Context) error {
			info, err := os.Stat(site.Assets(s.Web))
			if err == nil && time.Since(info.ModTime()) < time.Second {
				err = errors.New("it was just written")
			}
			return err
		}))
	}
}

// foreignOfTheSamePod lays somebody else's manifest of web beside its checkpoint. It is told, by one line.
func foreignOfTheSamePod(ctx context.Context, s *testSite) {
	begin := time.Now()
	foreign := filepath.Join(lab.Manifests, "by-hand.yaml.bak")
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec: {containers: []}\n", s.Web, site.Namespace)
	s.step("a foreign manifest is there", os.WriteFile(foreign, []byte(manifest), 0o600))
	told := func() (n int) {
		for _, line := range s.log(begin) {
			if strings.Contains(line.Text, foreign) {
				n++
			}
		}
		return n
	}
	s.step("it is told", site.Soon(ctx, "the line", func(context.Context) error {
		if told() == 0 {
			return errors.New("not told so far")
		}
		return nil
	}))
	s.step("it is removed", os.Remove(foreign))
	if n := told(); n != 1 {
		s.t.Errorf("told %d times", n)
	}
}

// deletedParents deletes web's pod again and again, while its Secret changes so that the checkpointer reads all the time.
// The kubelet removes the directory of a pod when it could unmount all of its volumes.
func deletedParents(ctx context.Context, s *testSite) {
	log, err := os.Stat(s.Kubelet.Log())
	s.step("the kubelet has a log", err)
	rotating, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; rotating.Err() == nil; i++ {
			_ = s.setPassword(rotating, fmt.Sprint("rotation ", i))
			select {
			case <-rotating.Done():
			case <-time.After(300 * time.Millisecond):
			}
		}
	}()
	for range 10 {
		pods, err := s.PodsOf(ctx, site.Namespace, "app=web")
		s.step("web has a pod", err)
		dir := filepath.Join(lab.KubeletDir, "pods", string(pods[0].UID))
		_, err = s.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, pods[0].Name)
		s.step("it is deleted", err)
		s.step("its volumes are unmounted and its directory is gone", site.Soon(ctx, "the unmount", func(context.Context) error {
			mounts, err := os.ReadFile("/proc/self/mounts")
			if err == nil && bytes.Contains(mounts, []byte(dir)) {
				err = errors.New("something is mounted in " + dir)
			}
			return errors.Join(err, site.Absent(dir))
		}, s.Kubelet))
		s.step("the next one is ready", s.WaitDaemonSet(ctx, site.Namespace, "web"))
	}
	stop()
	<-done
	data, err := os.ReadFile(s.Kubelet.Log())
	s.step("the kubelet's log is read", err)
	for line := range bytes.Lines(data[log.Size():]) {
		if bytes.Contains(line, []byte("device or resource busy")) {
			s.t.Errorf("the kubelet could not unmount: %s", line)
		}
	}
}
