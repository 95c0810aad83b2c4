package manifest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Snapshot is the content of a pod's volumes at one instant, in memory.
type Snapshot struct {
	volumes []volume // by name
}

// volume is one volume as a container sees it: a stable directory, the mount points in it, and its content.
type volume struct {
	name    string
	stable  owner
	dirs    []string // mount points relative to the stable directory, parents first
	entries []entry  // by path, parents first
}

// entry is a directory, a regular file or a symlink.
type entry struct {
	path  string // relative to the directory that holds the content, which is the first entry itself: ""
	owner owner
	data  []byte // of a file its content, of a symlink its target
}

// Snapshot reads the volumes that the kubelet mounted for a pod. It leaves no handle open in them: one would make the
// kubelet's unmount fail. An error means that a volume is not there yet or can't be seen.
func (s *Store) Snapshot(kubeletDir string, uid checkpoint.UID, assets []Asset) (*Snapshot, error) {
	snapshot := new(Snapshot)
	for _, asset := range assets {
		if !isComponent(asset.Volume) || strings.Contains(asset.Volume, ".") { // Kubernetes: a DNS label
			return nil, fmt.Errorf("%q can't be the name of a volume", asset.Volume)
		}
		v, err := readAsset(kubeletDir, uid, asset)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", asset.Volume, err)
		}
		v.name = asset.Volume
		if v.dirs, err = mountPoints(asset.Dirs); err != nil {
			return nil, fmt.Errorf("volume %s: %w", asset.Volume, err)
		}
		snapshot.volumes = append(snapshot.volumes, v)
	}
	slices.SortFunc(snapshot.volumes, func(a, b volume) int { return cmp.Compare(a.name, b.name) })
	return snapshot, nil
}

func readAsset(kubeletDir string, uid checkpoint.UID, asset Asset) (volume, error) {
	if asset.Plugin == "" {
		return madeVolume(asset.Files)
	}
	if !isComponent(string(uid)) || !isComponent(asset.Plugin) {
		return volume{}, fmt.Errorf("not a path: %s/volumes/%s", uid, asset.Plugin)
	}
	return readVolume(filepath.Join(kubeletDir, "pods", string(uid), "volumes", asset.Plugin, asset.Volume))
}

// madeVolume is a volume of files that we made. Only root may read them.
func madeVolume(files map[string][]byte) (volume, error) {
	private := ours(dirMode | fs.ModeDir)
	v := volume{stable: private, entries: []entry{{owner: private}}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isComponent(name) || strings.HasPrefix(name, "..") {
			return volume{}, fmt.Errorf("not a file name: %q", name)
		}
		v.entries = append(v.entries, entry{path: name, owner: ours(fileMode), data: files[name]})
	}
	return v, nil
}

// mountPoints are directories with all their parents, parents first.
func mountPoints(dirs []string) ([]string, error) {
	all := make(map[string]bool)
	for _, dir := range dirs {
		if !filepath.IsLocal(dir) || strings.HasPrefix(dir, "..") {
			return nil, fmt.Errorf("%q can't be a mount point in it", dir)
		}
		for dir = path.Clean(dir); dir != "."; dir = path.Dir(dir) {
			all[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// visible are the names that the stable directory links into the content. A mount point hides content of its name.
func (v *volume) visible() []string {
	var names []string
	for _, e := range v.entries {
		if e.path != "" && !strings.Contains(e.path, "/") && !slices.Contains(v.dirs, e.path) {
			names = append(names, e.path)
		}
	}
	return names
}

// Digest is what checkpoint.Checkpoint.Digest will be of a checkpoint with this manifest and these assets.
func Digest(manifest []byte, snapshot *Snapshot) string {
	digests := make(map[string]string, len(snapshot.volumes))
	for _, v := range snapshot.volumes {
		digests[v.name] = volumeDigest(v.stable, generationOf(v.entries))
	}
	return combine(manifest, digests)
}

// ManifestDigest is what checkpoint.Checkpoint.Manifest will be of a checkpoint with this manifest.
func ManifestDigest(manifest []byte) string { return combine(manifest, nil) }

// Digest tells two snapshots apart: by paths, modes, owners and contents.
func (s *Snapshot) Digest() string { return Digest(nil, s) }

// combine makes one digest of a manifest and of its volumes' digests, by volume. All of that can be read back from disk.
func combine(manifest []byte, volumes map[string]string) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "manifest %d\n", len(manifest))
	hash.Write(manifest)
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		fmt.Fprintf(hash, "volume %q %s\n", name, volumes[name])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func volumeDigest(stable owner, generation string) string {
	return fmt.Sprintf("%v %d:%d %s", stable.mode, stable.uid, stable.gid, generation)
}

// generationOf names the directory that holds a volume's content, by that content.
func generationOf(entries []entry) string {
	hash := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(hash, "%q %v %d:%d %d\n", e.path, e.owner.mode, e.owner.uid, e.owner.gid, len(e.data))
		hash.Write(e.data)
	}
	return ".." + hex.EncodeToString(hash.Sum(nil))
}

// isComponent says whether a name is one path component.
func isComponent(name string) bool {
	return filepath.IsLocal(name) && name != "." && !strings.Contains(name, "/")
}
