package manifest

import (
	"os"
	"syscall"
	"testing"
)

// A handle of ours in a volume of the kubelet's would make its unmount fail.
func TestSnapshotsLeaveNoHandle(t *testing.T) {
	dir := ownMounts(t)
	n := newNodeIn(t, dir)
	n.restart()
	handles := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(names)
	}
	before := handles()
	for range 200 {
		for _, asset := range volumes {
			volume := n.volume(asset.Plugin, asset.Volume)
			must(t, os.MkdirAll(volume, 0o755))
			must(t, syscall.Mount("tmpfs", volume, "tmpfs", 0, ""))
		}
		n.mountVolumes()
		n.save("v1")
		_, err := n.store.Snapshot(n.kubelet, uid, []Asset{volumes[0], {Volume: "other", Plugin: "kubernetes.io~secret"}})
		if err == nil {
			t.Fatal("read a volume that is not there")
		}
		for _, asset := range volumes {
			must(t, syscall.Unmount(n.volume(asset.Plugin, asset.Volume), 0))
		}
	}
	if after := handles(); after > before {
		t.Errorf("%d handles, %d before", after, before)
	}
}
