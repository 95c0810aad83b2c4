package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Dirs are the absolute paths of the directories in which checkpoints live.
type Dirs struct {
	Manifests string // the kubelet's static pod directory
	Inactive  string // the stored manifests
	Assets    string // what the manifests mount
}

// Store keeps checkpoints on disk: at any instant, whatever was cut, each of them is the whole old one or the whole new
// one. It remembers what it wrote, and so tells what others did to it. It is for one goroutine at a time, of the one
// process that holds the lock.
type Store struct {
	dirs    Dirs
	records map[string]*record // by file name
	foreign map[string]foreign // manifests in the static pod directory that are not ours, by file name
}

// record is what is remembered of one checkpoint.
type record struct {
	manifest   []byte // good
	pod        podName
	checkpoint checkpoint.Checkpoint
	volumes    []string // that it mounts from its assets
	stored     sight
	active     sight
	assets     stamp // of the asset directory when it was last read; zero: read it again
	activated  bool  // a manifest of ours has been in the static pod directory since this process started
}

// sight is what a file was when last looked at.
type sight struct {
	stamp   stamp
	settled bool
	file    checkpoint.File
	foreign bool // at our file's name, but somebody else's pod
}

// OpenStore makes the directories that are ours and finishes what a crash interrupted.
func OpenStore(dirs Dirs) (*Store, error) {
	s := &Store{dirs: dirs, records: make(map[string]*record), foreign: make(map[string]foreign)}
	on, err := s.open()
	if err != nil {
		return nil, err
	}
	defer on.Close()
	if err := s.adopt(on.inactive, on.manifests); err != nil {
		return nil, err
	}
	// What can't be cleaned does no harm: a full or read-only disk must not keep the agent from its work.
	_ = errors.Join(sweep(on.manifests, "."), sweep(on.inactive, "."), s.recoverAssets(on))
	return s, nil
}

// List reads the directories anew and compares them with what was last written.
func (s *Store) List() (checkpoint.Disk, error) {
	on, err := s.open()
	if err != nil {
		return checkpoint.Disk{}, err
	}
	defer on.Close()
	if err := s.adopt(on.inactive, on.manifests); err != nil {
		return checkpoint.Disk{}, err
	}
	disk := checkpoint.Disk{Known: true}
	for _, r := range s.records {
		if err := r.look(on); err != nil {
			return checkpoint.Disk{}, err
		}
		disk.Checkpoints = append(disk.Checkpoints, r.checkpoint)
	}
	slices.SortFunc(disk.Checkpoints, func(a, b checkpoint.Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return disk, s.lookForeign(on.manifests)
}

// adopt remembers the checkpoints on disk that are not remembered yet. The stored manifest counts; a good active one
// stands in for it.
func (s *Store) adopt(dirs ...*os.Root) error {
	for _, dir := range dirs {
		names, err := readNames(dir, ".")
		if err != nil {
			return err
		}
		for _, name := range names {
			if s.records[name] != nil || !mayBeOurs(name) {
				continue
			}
			data, err := readFile(dir, name)
			if err != nil {
				continue // not a manifest of ours
			}
			if r, err := s.parse(data); err == nil && r.name() == name {
				s.records[name] = r
			}
		}
	}
	return nil
}

// parse makes a record of a manifest of ours.
func (s *Store) parse(manifest []byte) (*record, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(manifest, &pod); err != nil {
		return nil, err
	}
	parent := pod.Annotations[AnnotationCheckpointOf]
	if pod.Kind != "Pod" || pod.Namespace == "" || parent == "" {
		return nil, errors.New("not the manifest of a checkpoint")
	}
	r := &record{
		manifest: manifest,
		pod:      podName{pod.Namespace, pod.Name},
		checkpoint: checkpoint.Checkpoint{
			Namespace:  pod.Namespace,
			Name:       parent,
			Lineage:    checkpoint.Lineage(pod.Annotations[AnnotationLineage]),
			ParentUID:  checkpoint.UID(pod.Annotations[AnnotationParentUID]),
			Containers: Running(&pod),
			Handover:   HandoverOf(&pod),
			HostPorts:  TakesHostPorts(&pod),
		},
	}
	if !isComponent(r.name()) || strings.HasPrefix(r.name(), ".") {
		return nil, fmt.Errorf("%q can't name a file", r.name())
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && filepath.Dir(v.HostPath.Path) == filepath.Join(s.dirs.Assets, r.base()) {
			r.volumes = append(r.volumes, filepath.Base(v.HostPath.Path))
		}
	}
	return r, nil
}

// mayBeOurs says whether a file name is one that FileName gives.
func mayBeOurs(name string) bool {
	return strings.HasSuffix(name, ".json") && strings.Contains(name, "_") && !strings.HasPrefix(name, ".")
}

func (r *record) name() string { return FileName(r.checkpoint.Namespace, r.checkpoint.Name) }
func (r *record) base() string { return strings.TrimSuffix(r.name(), ".json") }

// look compares what is on disk with what is remembered.
func (r *record) look(on *roots) (err error) {
	if r.stored, err = r.sight(on.inactive, r.stored); err != nil {
		return err
	}
	if r.active, err = r.sight(on.manifests, r.active); err != nil {
		return err
	}
	if r.active.foreign && !r.activated {
		r.active.file = checkpoint.Missing
	}
	r.activated = r.activated || r.active.file != checkpoint.Missing
	r.checkpoint.Stored, r.checkpoint.Active = r.stored.file, r.active.file
	r.lookAssets(on.assets)
	return nil
}

// sight looks at one file, unless it is still what it was. A file that can't be read is no manifest for anyone: Altered.
func (r *record) sight(dir *os.Root, last sight) (sight, error) {
	info, err := dir.Lstat(r.name())
	if errors.Is(err, fs.ErrNotExist) {
		return sight{}, nil
	}
	if err != nil {
		return sight{}, err
	}
	now := sight{stamp: stampOf(info), file: checkpoint.Altered}
	if last.settled && last.stamp == now.stamp {
		return last, nil
	}
	now.settled = now.stamp.settled(time.Now())
	data, err := readFile(dir, r.name())
	switch {
	case err != nil:
	case bytes.Equal(data, r.manifest):
		now.file = checkpoint.Intact
	default:
		now.foreign = declaredPod(data) != (podName{})
	}
	return now, nil
}
