package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seen is what a container sees at a volume: by path, the mode and what is read there. Links are followed.
func seen(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	var walk func(path string)
	walk = func(path string) {
		entries, err := os.ReadDir(filepath.Join(dir, path))
		must(t, err)
		for _, e := range entries {
			name := filepath.Join(path, e.Name())
			info, err := os.Stat(filepath.Join(dir, name))
			must(t, err)
			if strings.HasPrefix(e.Name(), "..") && e.Name() != dataLink {
				continue // a generation: its name differs, and its content is seen through the link
			}
			all[name] = info.Mode().String()
			if info.IsDir() {
				walk(name)
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			must(t, err)
			all[name] += " " + string(data)
		}
	}
	walk("")
	return all
}

func (n *node) volume(plugin, name string) string {
	return filepath.Join(n.kubelet, "pods", string(uid), "volumes", plugin, name)
}

func TestAssetsLookAsTheVolumeDid(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	want := map[string]string{
		"..data": "drwxr-xr-x", "..data/a.conf": "-rw-r----- one", "..data/sub": "drwxr-xr-x", "..data/sub/b.conf": "-rw-r----- two",
		"a.conf": "-rw-r----- one", "sub": "drwxr-xr-x", "sub/b.conf": "-rw-r----- two",
		"mnt": "drwxr-xr-x", "mnt/inner": "drwxr-xr-x",
	}
	if diff := cmp.Diff(want, seen(t, n.asset("config"))); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(n.asset("config"))
	must(t, err)
	if want := fs.ModeDir | fs.ModeSticky | 0o777; info.Mode() != want {
		t.Errorf("the volume's directory has mode %v, want %v", info.Mode(), want)
	}
}

func TestRotation(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	stable, err := os.Stat(n.asset("config"))
	must(t, err)
	bound, err := os.ReadFile(n.asset("config/a.conf"))
	must(t, err)
	resolved, err := filepath.EvalSymlinks(n.asset("config/a.conf")) // what a subPath mount is bound to
	must(t, err)
	manifest, err := os.Stat(n.stored())
	must(t, err)

	n.mount("config", "kubernetes.io~configmap", map[string]string{"a.conf": "changed", "c.conf": "three"})
	n.save("v1")
	want := map[string]string{
		"..data": "drwxr-xr-x", "..data/a.conf": "-rw-r----- changed", "..data/c.conf": "-rw-r----- three",
		"a.conf": "-rw-r----- changed", "c.conf": "-rw-r----- three", "mnt": "drwxr-xr-x", "mnt/inner": "drwxr-xr-x",
	}
	if diff := cmp.Diff(want, seen(t, n.asset("config"))); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Lstat(n.asset("config/sub")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a removed key is still linked")
	}
	if now, err := os.Stat(n.asset("config")); err != nil || !os.SameFile(now, stable) {
		t.Errorf("the volume's directory was replaced (%v)", err)
	}
	if data, err := os.ReadFile(resolved); err != nil || string(data) != string(bound) {
		t.Errorf("what a subPath mount is bound to reads %q (%v)", data, err)
	}
	if now, err := os.Stat(n.stored()); err != nil || !os.SameFile(now, manifest) {
		t.Errorf("the same manifest was written again (%v)", err)
	}
	c := n.list()
	if !c.Outdated || c.Digest != Digest(n.manifest("v1"), n.snapshot()) {
		t.Errorf("listed %+v", c)
	}
	must(t, n.store.Prune(web))
	if _, err := os.Lstat(resolved); !errors.Is(err, fs.ErrNotExist) || n.list().Outdated {
		t.Errorf("the old generation is still there (%v)", err)
	}
	if diff := cmp.Diff(want, seen(t, n.asset("config"))); diff != "" {
		t.Error(diff)
	}
}

func TestRotationBackToAnEarlierContent(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	first := n.list()
	n.mount("token", "kubernetes.io~projected", map[string]string{"token": "other"})
	n.save("v1")
	n.mount("token", "kubernetes.io~projected", map[string]string{"token": "secret"})
	n.save("v1")
	if data, _ := os.ReadFile(n.asset("token/token")); string(data) != "secret" || n.list().Digest != first.Digest {
		t.Errorf("reads %q", data)
	}
}

func TestOptionalVolumeWithoutContent(t *testing.T) {
	n := newNode(t)
	n.mount("config", "kubernetes.io~configmap", nil)
	n.save("v1")
	want := map[string]string{"..data": "drwxr-xr-x", "mnt": "drwxr-xr-x", "mnt/inner": "drwxr-xr-x"}
	if diff := cmp.Diff(want, seen(t, n.asset("config"))); diff != "" {
		t.Error(diff)
	}
}

func TestAVolumeThatThePodNoLongerHas(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	without := []byte(strings.Replace(string(n.manifest("v2")), n.asset("token"), "/elsewhere", 1))
	snapshot, err := n.store.Snapshot(n.kubelet, uid, []Asset{{Volume: "config", Plugin: "kubernetes.io~configmap"}})
	must(t, err)
	must(t, n.store.Save(without, snapshot))
	if c := n.list(); !c.Outdated || c.Digest != Digest(without, snapshot) {
		t.Errorf("listed %+v", c)
	}
	must(t, n.store.Prune(web))
	if _, err := os.Lstat(n.asset("token")); !errors.Is(err, fs.ErrNotExist) || n.list().Outdated {
		t.Errorf("it is still there (%v)", err)
	}
	if err := n.store.Save(n.manifest("v2"), snapshot); err == nil {
		t.Error("saved a manifest without one of its volumes")
	}
}

func TestOwnersAreKept(t *testing.T) {
	needRoot(t)
	n := newNode(t)
	file := filepath.Join(n.volume("kubernetes.io~projected", "token"), "..data/token")
	resolved, err := filepath.EvalSymlinks(file)
	must(t, err)
	// As the kubelet leaves it for fsGroup 2000 (k8s.io/kubernetes/pkg/volume/volume_linux.go).
	for path, mode := range map[string]fs.FileMode{
		n.volume("kubernetes.io~projected", "token"): 0o777 | fs.ModeSetgid,
		filepath.Dir(resolved):                       0o775 | fs.ModeSetgid,
		resolved:                                     0o440,
	} {
		must(t, os.Chown(path, 1000, 2000))
		must(t, os.Chmod(path, mode))
	}
	n.save("v1")
	for path, mode := range map[string]fs.FileMode{
		"token": 0o777 | fs.ModeSetgid | fs.ModeDir, "token/..data": 0o775 | fs.ModeSetgid | fs.ModeDir, "token/token": 0o440,
	} {
		info, err := os.Stat(n.asset(path))
		must(t, err)
		if got, want := ownerOf(info), (owner{mode, 1000, 2000}); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

func TestVolumeThatCannotBeSeen(t *testing.T) {
	n := newNode(t)
	ask := func(asset Asset, kubelet string) error {
		_, err := n.store.Snapshot(kubelet, uid, []Asset{asset})
		return err
	}
	must(t, os.MkdirAll(n.volume("kubernetes.io~secret", "empty"), 0o777))
	tests := map[string]struct {
		asset   Asset
		kubelet string
		want    string
	}{
		"wrong directory":  {Asset{Volume: "config", Plugin: "kubernetes.io~configmap"}, t.TempDir(), "--kubelet-dir"},
		"no propagation":   {Asset{Volume: "empty", Plugin: "kubernetes.io~secret"}, n.kubelet, "HostToContainer"},
		"path out of it":   {Asset{Volume: "config", Plugin: "../.."}, n.kubelet, "not a path"},
		"no volume's name": {Asset{Volume: "..", Plugin: "kubernetes.io~secret"}, n.kubelet, "name of a volume"},
		"name of a commit": {Asset{Volume: commitFile}, n.kubelet, "name of a volume"},
		"mount out of it":  {Asset{Volume: "config", Plugin: "kubernetes.io~configmap", Dirs: []string{"../x"}}, n.kubelet, "mount point"},
		"file out of it":   {Asset{Volume: "env", Files: map[string][]byte{"../x": nil}}, n.kubelet, "not a file name"},
		"hides generation": {Asset{Volume: "config", Plugin: "kubernetes.io~configmap", Dirs: []string{"..data"}}, n.kubelet, "mount point"},
	}
	for name, test := range tests {
		if err := ask(test.asset, test.kubelet); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFilesThatWeMake(t *testing.T) {
	n := newNode(t)
	snapshot, err := n.store.Snapshot(n.kubelet, uid, []Asset{
		{Volume: "config", Plugin: "kubernetes.io~configmap"}, {Volume: "token", Files: map[string][]byte{"env": []byte("A='b'")}},
	})
	must(t, err)
	must(t, n.store.Save(n.manifest("v1"), snapshot))
	want := map[string]string{"..data": "drwx------", "..data/env": "-rw------- A='b'", "env": "-rw------- A='b'"}
	if diff := cmp.Diff(want, seen(t, n.asset("token"))); diff != "" {
		t.Error(diff)
	}
}
