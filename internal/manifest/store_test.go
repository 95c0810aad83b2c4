package manifest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

const uid = checkpoint.UID("11111111-2222-3333-4444-555555555555")

// node is a node's directories, in which the kubelet mounted the volumes "config" and "token" of the pod kube-system/web.
type node struct {
	t       *testing.T
	dirs    Dirs
	kubelet string // its --root-dir
	store   *Store
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	n := &node{t: t, kubelet: filepath.Join(dir, "kubelet"), dirs: Dirs{
		Manifests: filepath.Join(dir, "manifests"),
		Inactive:  filepath.Join(dir, "inactive-manifests"),
		Assets:    filepath.Join(dir, "checkpoint-assets"),
	}}
	must(t, os.Mkdir(n.dirs.Manifests, 0o755))
	n.mount("config", "kubernetes.io~configmap", map[string]string{"a.conf": "one", "sub/b.conf": "two"})
	n.mount("token", "kubernetes.io~projected", map[string]string{"token": "secret"})
	n.restart()
	return n
}

// restart opens the store anew, as the process does after a crash.
func (n *node) restart() {
	n.t.Helper()
	store, err := OpenStore(n.dirs)
	must(n.t, err)
	n.store = store
}

// mount fills a volume as the kubelet's AtomicWriter does.
func (n *node) mount(name, plugin string, files map[string]string) {
	n.t.Helper()
	dir := filepath.Join(n.kubelet, "pods", string(uid), "volumes", plugin, name)
	must(n.t, os.MkdirAll(dir, 0o777))
	must(n.t, os.Chmod(dir, 0o777|fs.ModeSticky))
	generation, err := os.MkdirTemp(dir, "..2026_12_01_")
	must(n.t, err)
	must(n.t, os.Chmod(generation, 0o755))
	for path, data := range files {
		file := filepath.Join(generation, path)
		must(n.t, os.MkdirAll(filepath.Dir(file), 0o777))
		must(n.t, os.WriteFile(file, []byte(data), 0o640))
		must(n.t, os.Chmod(file, 0o640))
	}
	last, _ := os.Readlink(filepath.Join(dir, dataLink))
	must(n.t, os.Symlink(filepath.Base(generation), filepath.Join(dir, "..data_tmp")))
	must(n.t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, dataLink)))
	if last != "" {
		must(n.t, os.RemoveAll(filepath.Join(dir, last)))
	}
}

// manifest is a checkpoint of the pod kube-system/web with the given image.
func (n *node) manifest(image string) []byte {
	n.t.Helper()
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: filepath.Join(n.dirs.Assets, "kube-system_web", name),
		}}}
	}
	data, err := json.Marshal(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "web", Annotations: map[string]string{
			AnnotationCheckpointOf: "web", AnnotationParentUID: string(uid), AnnotationLineage: "kube-system/Pod/web",
		}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "web", Image: image}},
			Volumes: []corev1.Volume{
				volume("config"), volume("token"),
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/web"}}},
			},
		},
	})
	must(n.t, err)
	return data
}

func (n *node) snapshot() *Snapshot {
	n.t.Helper()
	snapshot, err := n.store.Snapshot(n.kubelet, uid, []Asset{
		{Volume: "config", Plugin: "kubernetes.io~configmap", Dirs: []string{"mnt/inner"}},
		{Volume: "token", Plugin: "kubernetes.io~projected"},
	})
	must(n.t, err)
	return snapshot
}

func (n *node) save(image string) {
	n.t.Helper()
	must(n.t, n.store.Save(n.manifest(image), n.snapshot()))
}

func (n *node) activate() {
	n.t.Helper()
	must(n.t, n.store.Activate("kube-system", "web"))
}

// list is what the store finds of the one checkpoint; zero if there is none.
func (n *node) list() checkpoint.Checkpoint {
	n.t.Helper()
	disk, err := n.store.List()
	must(n.t, err)
	if !disk.Known || len(disk.Checkpoints) > 1 {
		n.t.Fatalf("listed %+v", disk)
	}
	if len(disk.Checkpoints) == 0 {
		return checkpoint.Checkpoint{}
	}
	return disk.Checkpoints[0]
}

func (n *node) active() string { return filepath.Join(n.dirs.Manifests, "kube-system_web.json") }
func (n *node) stored() string { return filepath.Join(n.dirs.Inactive, "kube-system_web.json") }
func (n *node) asset(path string) string {
	return filepath.Join(n.dirs.Assets, "kube-system_web", path)
}

func (n *node) wantFiles(stored, active checkpoint.File) {
	n.t.Helper()
	if c := n.list(); c.Stored != stored || c.Active != active {
		n.t.Fatalf("stored is %v and active %v, want %v and %v", c.Stored, c.Active, stored, active)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree describes everything below a directory: paths, modes, owners, inodes, times and contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		content := ""
		switch info.Mode().Type() {
		case 0:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(data)
		case fs.ModeSymlink:
			content, _ = os.Readlink(path)
		}
		stat := info.Sys().(*syscall.Stat_t)
		words, err := json.Marshal([]any{info.Mode().String(), stat.Uid, stat.Gid, stat.Ino, stat.Mtim, content})
		all[path] = string(words)
		return err
	}))
	return all
}

func TestSaveAndActivate(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	want := checkpoint.Checkpoint{
		Namespace: "kube-system", Name: "web", Lineage: "kube-system/Pod/web", ParentUID: uid, Containers: []string{"web"},
		Digest: Digest(n.manifest("v1"), n.snapshot()), Stored: checkpoint.Intact,
	}
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error(diff)
	}
	n.activate()
	want.Active = checkpoint.Intact
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error(diff)
	}
	n.restart()
	if diff := cmp.Diff(want, n.list()); diff != "" {
		t.Error("after a restart:", diff)
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	must(t, n.store.Withdraw("kube-system", "web"))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
}

func TestNothingOfOursIsLeftAfterRemove(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	if err := n.store.Remove("kube-system", "web"); err == nil {
		t.Fatal("removed the assets of a manifest that the kubelet has")
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	must(t, n.store.Remove("kube-system", "web"))
	must(t, n.store.Remove("kube-system", "web"))
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s still holds %v (%v)", dir, names, err)
		}
	}
	if diff := cmp.Diff(checkpoint.Checkpoint{}, n.list()); diff != "" {
		t.Error(diff)
	}
}

func TestModesOfOurOwn(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	for path, want := range map[string]fs.FileMode{
		n.stored(): 0o600, n.active(): 0o600,
		n.dirs.Inactive: 0o700 | fs.ModeDir, n.dirs.Assets: 0o700 | fs.ModeDir, n.asset(""): 0o700 | fs.ModeDir,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode(), want, err)
		}
	}
}

func TestWhatIsSoAlreadyIsNotWritten(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	before := tree(t, filepath.Dir(n.dirs.Assets))
	n.save("v1")
	n.activate()
	must(t, n.store.Restore("kube-system", "web"))
	must(t, n.store.Prune("kube-system", "web"))
	n.restart()
	n.save("v1")
	if diff := cmp.Diff(before, tree(t, filepath.Dir(n.dirs.Assets))); diff != "" {
		t.Error(diff)
	}
}

// damages are what somebody else may do to one of our files.
var damages = map[string]struct {
	do   func(path string) error
	want checkpoint.File
}{
	"deleted":   {os.Remove, checkpoint.Missing},
	"truncated": {func(path string) error { return os.Truncate(path, 0) }, checkpoint.Altered},
	"overwritten in place, same length": {func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("#"), 0)
		return errors.Join(err, f.Close())
	}, checkpoint.Altered},
	"another image": {func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Replace(string(data), "v1", "v2-debug", 1)), 0o600)
	}, checkpoint.Altered},
	"another pod": {func(path string) error {
		return os.WriteFile(path, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: other}\n"), 0o600)
	}, checkpoint.Altered},
	"an empty directory": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }, checkpoint.Altered},
	"a symlink": {func(path string) error {
		target := path + ".precious"
		return errors.Join(os.Rename(path, target), os.Symlink(target, path))
	}, checkpoint.Altered},
	"a dangling symlink": {func(path string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) }, checkpoint.Altered},
	"a pipe":             {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, checkpoint.Altered},
	"20 MB of noise":     {func(path string) error { return os.Truncate(path, 20<<20) }, checkpoint.Altered},
}

func TestDamageIsSeenAndRepaired(t *testing.T) {
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)

			must(t, damage.do(n.active()))
			n.wantFiles(checkpoint.Intact, damage.want)
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)

			must(t, damage.do(n.stored()))
			n.wantFiles(damage.want, checkpoint.Intact)
			must(t, n.store.Restore("kube-system", "web"))
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
			if data, _ := os.ReadFile(n.stored()); string(data) != string(n.manifest("v1")) {
				t.Errorf("restored %q", data)
			}
		})
	}
}

// What is damaged while nobody looks is repaired from the other copy.
func TestDamageDuringOurAbsence(t *testing.T) {
	for name, damage := range damages {
		if name == "another image" {
			continue // a good manifest: whoever wrote it meant it, and the parent's digest tells
		}
		t.Run("stored "+name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			digest := n.list().Digest
			must(t, damage.do(n.stored()))
			n.restart()
			n.wantFiles(damage.want, checkpoint.Intact)
			must(t, n.store.Restore("kube-system", "web"))
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
			if got := n.list().Digest; got != digest {
				t.Errorf("digest %s, was %s", got, digest)
			}
		})
	}
	for name, damage := range damages {
		if name == "another pod" {
			continue // at our name, but without our mark: see TestForeignAtOurName
		}
		t.Run("active "+name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			n.activate()
			must(t, damage.do(n.active()))
			n.restart()
			n.wantFiles(checkpoint.Intact, damage.want)
			n.activate()
			n.wantFiles(checkpoint.Intact, checkpoint.Intact)
		})
	}
}

func TestDirectoryWithContentInOurPlace(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	must(t, os.MkdirAll(filepath.Join(n.active(), "precious"), 0o755))
	if err := n.store.Activate("kube-system", "web"); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.active(), "precious")); err != nil {
		t.Error(err)
	}
	must(t, os.RemoveAll(n.active()))
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestInactiveDirectoryLost(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	n.activate()
	must(t, os.RemoveAll(n.dirs.Inactive))
	n.wantFiles(checkpoint.Missing, checkpoint.Intact)
	must(t, n.store.Restore("kube-system", "web"))
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestStaticPodDirectoryMissing(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	must(t, os.RemoveAll(n.dirs.Manifests))
	if disk, err := n.store.List(); err == nil || disk.Known {
		t.Errorf("listed %+v without a static pod directory", disk)
	}
	if err := n.store.Activate("kube-system", "web"); err == nil {
		t.Error("activated without a static pod directory")
	}
	_, err := OpenStore(n.dirs)
	if err == nil || !strings.Contains(err.Error(), n.dirs.Manifests) || !strings.Contains(err.Error(), "--manifests-dir") {
		t.Errorf("got %v", err)
	}
}

func TestForeignManifests(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	others := map[string]string{
		"web.yaml":              "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"web.yaml.bak":          "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"other.yaml":            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: other\n  namespace: kube-system\n",
		"web-in-default.json":   `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`,
		"noise_and-more.json":   "kind Pod {{{",
		".hidden.yaml":          "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n",
		"kube-system-web.json":  string(n.manifest("predecessor")),
		".pod-checkpointer.txt": "not ours, though it almost looks so",
	}
	for name, data := range others {
		must(t, os.WriteFile(filepath.Join(n.dirs.Manifests, name), []byte(data), 0o644))
	}
	before := tree(t, n.dirs.Manifests)

	n.list()
	if got, want := n.store.Foreign("kube-system", "web"), []string{"web.yaml", "web.yaml.bak"}; !slices.Equal(got, want) {
		t.Errorf("foreign: %q, want %q", got, want)
	}
	if err := n.store.Activate("kube-system", "web"); err == nil || !strings.Contains(err.Error(), "web.yaml.bak") {
		t.Errorf("activated beside a foreign manifest of the same pod: %v", err)
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	n.restart()
	if diff := cmp.Diff(before, tree(t, n.dirs.Manifests)); diff != "" {
		t.Error(diff)
	}

	must(t, os.Remove(filepath.Join(n.dirs.Manifests, "web.yaml")))
	must(t, os.Remove(filepath.Join(n.dirs.Manifests, "web.yaml.bak")))
	n.activate()
	n.wantFiles(checkpoint.Intact, checkpoint.Intact)
}

func TestForeignAtOurName(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	theirs := []byte("apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: kube-system\n")
	must(t, os.WriteFile(n.active(), theirs, 0o644))
	n.wantFiles(checkpoint.Intact, checkpoint.Missing)
	if err := n.store.Activate("kube-system", "web"); err == nil {
		t.Error("overwrote somebody else's manifest")
	}
	must(t, n.store.Withdraw("kube-system", "web"))
	if data, err := os.ReadFile(n.active()); err != nil || string(data) != string(theirs) {
		t.Errorf("it is %q now (%v)", data, err)
	}
}

func TestLeftoversAreSwept(t *testing.T) {
	n := newNode(t)
	n.save("v1")
	leftovers := []string{
		filepath.Join(n.dirs.Manifests, tempPrefix+"1"), filepath.Join(n.dirs.Inactive, tempPrefix+"2"), n.asset(tempPrefix + "3/sub"),
		filepath.Join(n.dirs.Assets, "kube-system_gone/volume"),
	}
	theirs := []string{
		filepath.Join(n.dirs.Manifests, ".kube-apiserver.yaml.swp"), filepath.Join(n.dirs.Inactive, ".hidden"),
		filepath.Join(n.dirs.Assets, "lost+found/volume"),
	}
	for _, path := range slices.Concat(leftovers, theirs) {
		must(t, os.MkdirAll(path, 0o700))
	}
	n.restart()
	for _, path := range leftovers {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	for _, path := range theirs {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestAdoptNode(t *testing.T) {
	n := newNode(t)
	for _, uid := range []string{"one", "two"} {
		if recorded, err := n.store.AdoptNode("node-1", uid); err != nil || recorded != "one" {
			t.Errorf("asked with %s: recorded %q, %v", uid, recorded, err)
		}
		n.restart()
	}
	must(t, os.WriteFile(filepath.Join(n.dirs.Inactive, stateFile), nil, 0o600))
	if recorded, err := n.store.AdoptNode("node-1", "two"); err == nil {
		t.Errorf("a damaged record reads as %q", recorded)
	}
}
