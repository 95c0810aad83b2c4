package manifest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

const uid = checkpoint.UID("11111111-2222-3333-4444-555555555555")

// web is the checkpoint of the pod kube-system/web.
var web = Key{Namespace: "kube-system", Name: "web"}

// volumes are those of that pod.
var volumes = []Asset{
	{Volume: "config", Plugin: "kubernetes.io~configmap", Dirs: []string{"mnt/inner"}},
	{Volume: "token", Plugin: "kubernetes.io~projected"},
}

// node is a node's directories, in which the kubelet mounted the volumes "config" and "token" of the pod kube-system/web.
type node struct {
	t       testing.TB
	dir     string // all of it
	dirs    Dirs
	kubelet string // its --root-dir
	uid     checkpoint.UID
	digests map[Key]map[*revision]string
	store   *Store

	restarts bool // after an error, in the scenario
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := newNodeIn(t, memoryDir(t))
	n.mountVolumes()
	n.restart()
	return n
}

func (n *node) mountVolumes() {
	n.mount("config", "kubernetes.io~configmap", map[string]string{"a.conf": "one", "sub/b.conf": "two"})
	n.mount("token", "kubernetes.io~projected", map[string]string{"token": "secret"})
}

func newNodeIn(t testing.TB, dir string) *node {
	t.Helper()
	n := &node{t: t, dir: dir, dirs: dirsIn(dir), kubelet: filepath.Join(dir, "kubelet"), uid: uid, digests: map[Key]map[*revision]string{web: {}, web.other(): {}}}
	must(t, os.MkdirAll(n.dirs.Manifests, 0o755))
	return n
}

func dirsIn(dir string) Dirs {
	return Dirs{
		Manifests: filepath.Join(dir, "manifests"),
		Inactive:  filepath.Join(dir, "inactive-manifests"),
		Assets:    filepath.Join(dir, "checkpoint-assets"),
	}
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
	dir := filepath.Join(n.kubelet, "pods", string(n.uid), "volumes", plugin, name)
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
func (n *node) manifest(image string) []byte { return n.manifestOf(uid, image) }

// manifestOf is the same of the pod with the given UID.
func (n *node) manifestOf(uid checkpoint.UID, image string) []byte {
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
	snapshot, err := n.store.Snapshot(n.kubelet, n.uid, volumes)
	must(n.t, err)
	return snapshot
}

func (n *node) save(image string) {
	n.t.Helper()
	must(n.t, n.store.Save(n.manifest(image), n.snapshot()))
}

func (n *node) activate() {
	n.t.Helper()
	must(n.t, n.store.Activate(web))
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree describes everything below a directory: paths, modes, owners, inodes, times and contents.
func tree(t testing.TB, dir string) map[string]string {
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

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("this test needs root")
	}
	t.Skip("NOT TESTED: this test needs root")
}
