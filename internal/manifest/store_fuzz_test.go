package manifest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// outside is all that lies beside the directories of the checkpoints.
func (n *node) outside() map[string]string {
	all := tree(n.t, n.dir)
	delete(all, n.dir)
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		for path := range all {
			if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
				delete(all, path)
			}
		}
	}
	return all
}

// Whatever lies where our files should, the store opens, lists, never touches what is not its own, and a save and an
// activation lead to the good state.
func FuzzContentsOfOurFiles(f *testing.F) {
	n := newNode(f)
	good := n.manifest("v1")
	f.Add([]byte{}, good, []byte(`{"manifest":"e30=","generations":{"config":"../../../x"}}`), []byte("{}"))
	f.Add([]byte(`{"kind":"Pod"}`), []byte("kind: Pod\nmetadata: {name: web, namespace: kube-system}"), good, []byte("null"))
	f.Add(good, []byte("\x00"), []byte("null"), []byte(`[]`))
	f.Fuzz(func(t *testing.T, stored, active, commit, state []byte) {
		n := newNode(t)
		must(t, os.Mkdir(n.asset(""), 0o700))
		for path, data := range map[string][]byte{
			n.stored(): stored, n.active(): active, n.asset(commitFile): commit, filepath.Join(n.dirs.Inactive, stateFile): state,
		} {
			must(t, os.WriteFile(path, data, 0o600))
		}
		before := n.outside()
		n.restart()
		if disk, err := n.store.List(); err != nil || len(disk.Checkpoints) > 1 {
			t.Fatalf("listed %+v, %v", disk, err)
		}
		_ = n.store.RecordNode("node", "uid")
		n.save("v2")
		if !isForeign(active) {
			n.activate()
			disk, err := n.store.List() // what was stored there may be kept as the generation before
			must(t, err)
			if !slices.ContainsFunc(disk.Checkpoints, func(c checkpoint.Checkpoint) bool {
				return !c.Previous && c.Stored == checkpoint.Intact && c.Active == checkpoint.Intact
			}) {
				t.Fatalf("listed %+v", disk)
			}
		}
		if diff := cmp.Diff(before, n.outside()); diff != "" {
			t.Error(diff)
		}
	})
}

// Whatever a pod, a volume, a key or a mount point is called, nothing is written outside.
func FuzzNames(f *testing.F) {
	f.Add("kube-system", "web", "config", "a/b", "key")
	f.Add("..", "..", "..", "../..", "../../key")
	f.Add("a/../..", "/etc", "..data", "..data", "..data")
	f.Add("", ".", ".pod-checkpointer-1", "commit.json", "")
	f.Add("a", "b", "commit.json", "c", "key")
	f.Fuzz(func(t *testing.T, namespace, name, volume, mountPoint, key string) {
		n := newNode(t)
		data, err := json.Marshal(corev1.Pod{
			TypeMeta: metav1.TypeMeta{Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name,
				Annotations: map[string]string{AnnotationCheckpointOf: name, AnnotationLineage: "lineage"},
			},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(n.dirs.Assets, namespace+"_"+name, volume)},
			}}}},
		})
		must(t, err)
		before := n.outside()
		snapshot, err := n.store.Snapshot(n.kubelet, uid, []Asset{
			{Volume: volume, Dirs: []string{mountPoint}, Files: map[string][]byte{key: []byte("data")}},
		})
		if err == nil && n.store.Save(data, snapshot) == nil {
			got := n.list()
			if got.Stored != checkpoint.Intact || got.Digest != Digest(data, snapshot) {
				t.Errorf("saved, but listed as %+v", got)
			}
			key := Key{Namespace: got.Namespace, Name: got.Name} // JSON keeps no invalid UTF-8
			must(t, n.store.Activate(key))
			must(t, n.store.Withdraw(key))
			must(t, n.store.Prune(key))
			must(t, n.store.Remove(key))
		}
		n.wantNothingLeft()
		if diff := cmp.Diff(before, n.outside()); diff != "" {
			t.Error(diff)
		}
	})
}

// What is saved reads as the volume did, whatever it holds; and its digest can be read back.
func FuzzContentsOfVolumes(f *testing.F) {
	f.Add("a", []byte("data"), uint32(0o644), "sub/b", []byte{0, 255}, uint32(0o400))
	f.Add("mnt", []byte{}, uint32(0o777), "mnt2/x", []byte("x"), uint32(0o1))
	f.Add("-first", []byte("sorts before a dot"), uint32(0o644), "a-b/c", []byte("between a and a/b"), uint32(0o644))
	f.Fuzz(func(t *testing.T, one string, oneData []byte, oneMode uint32, two string, twoData []byte, twoMode uint32) {
		n := newNode(t)
		generation, err := filepath.EvalSymlinks(filepath.Join(n.volume("kubernetes.io~configmap", "config"), dataLink))
		must(t, err)
		for _, file := range []struct {
			name string
			data []byte
			mode uint32
		}{{one, oneData, oneMode}, {two, twoData, twoMode}} {
			path := filepath.Join(generation, file.name)
			if !utf8.ValidString(file.name) || !filepath.IsLocal(file.name) || os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, file.data, 0o600) != nil {
				return // no file of the kubelet's can be called that
			}
			must(t, os.Chmod(path, fs.FileMode(file.mode&0o777|0o400))) // so that not only root can read it
		}
		n.save("v1")
		want, err := readVolume(n.volume("kubernetes.io~configmap", "config"))
		must(t, err)
		got, err := readVolume(n.asset("config"))
		must(t, err)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(volume{}, entry{}, owner{})); diff != "" {
			t.Error(diff)
		}
		n.restart()
		if n.list().Digest != Digest(n.manifest("v1"), n.snapshot()) {
			t.Error("the digest on disk differs")
		}
	})
}
