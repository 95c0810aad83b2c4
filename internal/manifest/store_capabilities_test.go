package manifest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var capabilityNumbers = map[corev1.Capability]int{
	"CHOWN": unix.CAP_CHOWN, "DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "FOWNER": unix.CAP_FOWNER, "FSETID": unix.CAP_FSETID,
}

// TestCapabilities: with those that the DaemonSet adds, and no other, a checkpoint of a pod with an fsGroup and with a
// token of its own user is saved whole; without any one of them it is not.
func TestCapabilities(t *testing.T) {
	needRoot(t)
	added := addedCapabilities(t)
	t.Run("with all of them", func(t *testing.T) {
		if n := newNodeOfOthers(t); !n.savesWholeWith(added) {
			t.Errorf("with %v no checkpoint is saved whole", added)
		}
	})
	for _, without := range added {
		t.Run("without "+string(without), func(t *testing.T) {
			kept := slices.DeleteFunc(slices.Clone(added), func(c corev1.Capability) bool { return c == without })
			if n := newNodeOfOthers(t); n.savesWholeWith(kept) {
				t.Errorf("a checkpoint is saved whole without %s: the DaemonSet must not add it", without)
			}
		})
	}
}

// addedCapabilities are those that deploy/base adds to none.
func addedCapabilities(t *testing.T) []corev1.Capability {
	t.Helper()
	data, err := os.ReadFile("../../deploy/base/daemonset.yaml")
	must(t, err)
	var d appsv1.DaemonSet
	must(t, yaml.UnmarshalStrict(data, &d))
	capabilities := d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities
	if !slices.Equal(capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Fatalf("the DaemonSet drops %v, not ALL", capabilities.Drop)
	}
	return capabilities.Add
}

// newNodeOfOthers is a node on which the kubelet gave the volumes the owners and modes of a pod with an fsGroup, and the
// token to the pod's user (k8s.io/kubernetes/pkg/volume.SetVolumeOwnership, pkg/volume/projected).
func newNodeOfOthers(t *testing.T) *node {
	n := newNode(t)
	volumes := filepath.Join(n.kubelet, "pods", string(n.uid), "volumes")
	config := filepath.Join(volumes, "kubernetes.io~configmap", "config", dataLink)
	token := filepath.Join(volumes, "kubernetes.io~projected", "token", dataLink, "token")
	must(t, os.Chown(config, 0, 2000))
	must(t, unix.Chmod(config, 0o2775))
	must(t, os.Chown(filepath.Join(config, "a.conf"), 1000, 2000))
	must(t, os.Chown(token, 1000, 0))
	must(t, os.Chmod(token, 0o600))
	return n
}

// savesWholeWith says whether what is on disk after a save has the content, the owners and the modes that it should.
func (n *node) savesWholeWith(kept []corev1.Capability) bool {
	n.t.Helper()
	holdOnly(n.t, kept)
	snapshot, err := n.store.Snapshot(n.kubelet, n.uid, volumes)
	if err != nil {
		n.t.Logf("it is not read: %v", err)
		return false
	}
	manifest := n.manifest("v1")
	if err := n.store.Save(manifest, snapshot); err != nil {
		n.t.Logf("it is not saved: %v", err)
		return false
	}
	n.restart()
	if n.list().Digest != Digest(manifest, snapshot) {
		n.t.Log("it is saved, but not as it was")
		return false
	}
	return true
}

// holdOnly drops all other capabilities, for this goroutine and for good: its thread ends with the test.
func holdOnly(t testing.TB, kept []corev1.Capability) {
	t.Helper()
	runtime.LockOSThread()
	var mask uint32
	for _, c := range kept {
		number, known := capabilityNumbers[c]
		if !known {
			t.Fatalf("no test knows the capability %s", c)
		}
		mask |= 1 << number
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: mask, Permitted: mask}}
	must(t, unix.Capset(&header, &data[0]))
}
