//go:build linux

package e2e

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

//go:embed testdata/slow.yaml
var slowWorkload []byte

// quickSync has the kubelet look at its pods' Secrets every 2 s instead of every minute.
var quickSync = lab.NodeOptions{KubeletConfig: map[string]any{"syncFrequency": "2s"}}

// TestSecretRotation follows a Secret that changes: into a stored checkpoint, and into an active one while it runs.
func TestSecretRotation(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSite(ctx, t, quickSync)
	s.step("slow is applied", s.Apply(ctx, slowWorkload))
	s.step("slow is ready", s.WaitDaemonSet(ctx, site.Namespace, "slow"))
	pods, err := s.PodsOf(ctx, site.Namespace, "app=slow")
	s.step("slow has a pod", err)
	slow := pods[0].Name
	s.step("the password is changed", s.setPassword(ctx, "second"))
	s.step("the stored copy follows", s.waitCopy(ctx, slow, "second"))

	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	before := s.ask(ctx, site.Static(slow), "/etc/keys")
	if sumOf(before, "password") != sum("second") {
		t.Error("the checkpoint does not see the password that the parent saw last")
	}
	s.step("API server is back", s.APIServer.Start(ctx))
	// Not restarted, though it may take a minute: a kubelet that restarts takes its pods for Ready as the API server has them,
	// and slow's checkpoint would be withdrawn.
	s.step("the node is Ready", s.WaitReady(ctx))
	s.step("the password is changed again", s.setPassword(ctx, "third"))
	s.step("the copy follows", s.waitCopy(ctx, slow, "third"))
	s.step("slow's checkpoint is still active", site.Exists(site.Active(slow)))
	after := s.ask(ctx, site.Static(slow), "/etc/keys")
	if sumOf(after, "password") != sum("third") || !after.Started.Equal(before.Started) {
		t.Errorf("the checkpoint that runs since %v does not see the new password", after.Started)
	}
}

// TestPowerCutDuringSaves cuts the power at random moments while the checkpointer saves, and sees each time that every
// pod comes back with a whole copy, the old or the new.
func TestPowerCutDuringSaves(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	cuts := 10
	if more, err := strconv.Atoi(os.Getenv("POWER_CUTS")); err == nil {
		cuts = more
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d, %d power cuts", seed, cuts)
	s := newSite(ctx, t, quickSync)
	for i := range cuts {
		old, fresh := fmt.Sprintf("%d-before", i), fmt.Sprintf("%d-after", i)
		s.step("the password is "+old, errors.Join(s.setPassword(ctx, old), s.waitCopy(ctx, s.Gateway, old), s.waitCopy(ctx, s.Web, old)))
		s.step("the password is "+fresh, s.setPassword(ctx, fresh))
		s.step("the kubelet swaps it", s.waitVolume(ctx, fresh))
		moment := time.NewTimer(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		<-moment.C
		s.step("power is cut", s.PowerCut(ctx))
		s.step("API server is stopped", s.APIServer.Stop(ctx))
		s.step("power is on", s.PowerOn(ctx))
		all := s.testimonies(ctx, site.Static(s.Web))
		for _, got := range []string{sumOf(all.web, "in/password"), sumOf(all.gateway, "password")} {
			if got != sum(old) && got != sum(fresh) {
				t.Errorf("after the power cut a pod sees neither the old password nor the new, but %q", got)
			}
		}
		s.step("nothing half-made is left", noTemporaries())
		s.step("API server is back", s.APIServer.Start(ctx))
		// The kubelet's own back-off, of up to a minute, is not what is tested here.
		s.step("kubelet is restarted", errors.Join(s.Kubelet.Stop(ctx), s.Kubelet.Start(ctx)))
		s.step("the checkpoints are withdrawn", lab.Wait(ctx, "the hand-over", func(context.Context) error {
			return errors.Join(site.Absent(site.Active(s.Web)), site.Absent(site.Active(s.Gateway)))
		}, s.Kubelet))
	}
}

func (s *testSite) setPassword(ctx context.Context, password string) error {
	patch := fmt.Appendf(nil, `{"stringData":{"password":%q}}`, password)
	_, err := s.Client().CoreV1().Secrets(site.Namespace).Patch(ctx, "keys", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// waitCopy waits until the password is in the assets of a pod's checkpoint.
func (s *testSite) waitCopy(ctx context.Context, pod, password string) error {
	return site.Soon(ctx, "the copy of the password", func(context.Context) error {
		return holds(filepath.Join(site.Assets(pod), "keys"), password)
	}, s.Kubelet)
}

// waitVolume waits until the kubelet has put the password into gateway's volume, looking all the time.
func (s *testSite) waitVolume(ctx context.Context, password string) error {
	for ctx.Err() == nil {
		volumes, _ := filepath.Glob(lab.KubeletDir + "/pods/*/volumes/kubernetes.io~secret/keys")
		for _, volume := range volumes {
			if holds(volume, password) == nil {
				return nil
			}
		}
	}
	return ctx.Err()
}

// holds is nil if a copy of the Secret has the password, under either of the paths that the workloads give it.
func holds(dir, password string) error {
	data, err := os.ReadFile(filepath.Join(dir, "password"))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(filepath.Join(dir, "in", "password"))
	}
	if err == nil && string(data) != password {
		err = fmt.Errorf("it is %q", data)
	}
	return err
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// sumOf is the SHA-256 of a file in /etc/keys, as a witness sees it.
func sumOf(t witness.Testimony, path string) string {
	for _, file := range t.Dirs["/etc/keys"] {
		if file.Path == path {
			return file.SHA256
		}
	}
	return "nothing at " + path
}

// noTemporaries looks for files of ours that a rename should have taken away.
func noTemporaries() (err error) {
	for _, dir := range []string{lab.Manifests, site.InactiveDir} {
		entries, readErr := os.ReadDir(dir)
		err = errors.Join(err, readErr)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), ".") {
				err = errors.Join(err, fmt.Errorf("%s is left in %s", entry.Name(), dir))
			}
		}
	}
	return err
}
