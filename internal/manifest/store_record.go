package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// record is what is remembered of one checkpoint.
type record struct {
	manifest   []byte // good
	pod        podName
	volumes    []string // that it mounts from its assets
	checkpoint checkpoint.Checkpoint

	stored, active sight
	assets         stamp    // of the asset directory when it was last read; zero: read it again
	damaged        []string // volumes that are missing or damaged
	assetDirs      []string // the asset directory and all directories in it, relative to that of all assets
	activated      bool     // a manifest of ours has been in the static pod directory since this process started
	nonce          int      // of the active manifest
}

// sight is what a file was when last looked at.
type sight struct {
	stamp   stamp
	settled bool
	file    checkpoint.File
	nonce   int  // of an Intact one
	foreign bool // at our file's name, but somebody else's pod
}

// parse makes a record of a manifest of ours, with a nonce or without.
func parse(data []byte, previous bool, assetsDir string) (*record, error) {
	manifest, _ := withoutNonce(data)
	var pod corev1.Pod
	if err := json.Unmarshal(manifest, &pod); err != nil {
		return nil, err
	}
	parent, lineage := pod.Annotations[AnnotationCheckpointOf], pod.Annotations[AnnotationLineage]
	if pod.Kind != "Pod" || pod.Namespace == "" || parent == "" || lineage == "" {
		return nil, errors.New("not the manifest of a checkpoint of ours")
	}
	r := &record{
		manifest: manifest,
		pod:      podName{pod.Namespace, pod.Name},
		checkpoint: checkpoint.Checkpoint{
			Namespace:     pod.Namespace,
			Name:          parent,
			Lineage:       checkpoint.Lineage(lineage),
			ParentUID:     checkpoint.UID(pod.Annotations[AnnotationParentUID]),
			Containers:    Running(&pod),
			Handover:      HandoverOf(&pod),
			HostPorts:     TakesHostPorts(&pod),
			Ports:         HostPorts(&pod),
			DeclaresPorts: !pod.Spec.HostNetwork && len(HostPorts(&pod)) > 0,
			Previous:      previous,
			Manifest:      ManifestDigest(manifest),
		},
	}
	if !isComponent(r.name()) || !mayBeOurs(r.name()) || strings.Contains(pod.Namespace+parent, "_") {
		return nil, fmt.Errorf("%q can't be the name of its file", r.name())
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && filepath.Dir(v.HostPath.Path) == filepath.Join(assetsDir, r.base()) {
			r.volumes = append(r.volumes, filepath.Base(v.HostPath.Path))
		}
	}
	return r, nil
}

func (r *record) key() Key {
	return Key{r.checkpoint.Namespace, r.checkpoint.Name, r.checkpoint.Previous}
}

func (r *record) name() string { return r.key().FileName() }
func (r *record) base() string { return r.key().base() }

// lookStored compares the stored manifest with the one that is remembered.
func (r *record) lookStored(inactive *os.Root) (err error) {
	r.stored, err = r.sight(inactive, r.stored, true)
	r.checkpoint.Stored, r.checkpoint.SavedAt = r.stored.file, time.Time{}
	if r.stored.file == checkpoint.Intact {
		r.checkpoint.SavedAt = time.Unix(r.stored.stamp.mtime.Unix())
	}
	return err
}

// lookActive compares the active manifest with the one that is remembered.
func (r *record) lookActive(manifests *os.Root) (err error) {
	r.active, err = r.sight(manifests, r.active, r.activated)
	r.checkpoint.Active = r.active.file
	r.activated = r.activated || r.active.file != checkpoint.Missing
	if r.active.file == checkpoint.Intact {
		r.nonce = r.active.nonce
	}
	return err
}

// lookAssets brings what the record says of its assets up to date, if anything can have changed them.
func (r *record) lookAssets(assets *os.Root) {
	now := stamp{size: -1} // there is none
	if info, err := assets.Lstat(r.base()); err == nil {
		now = stampOf(info)
	}
	if now == r.assets {
		return
	}
	a := assetDir{assets, r.base()}
	digests := a.digests(r.volumes)
	outdated, err := a.outdated(r.volumes)
	r.checkpoint.Digest = combine(r.manifest, digests)
	r.checkpoint.Outdated = err != nil || len(outdated) > 0
	r.damaged = without(r.volumes, digests)
	r.assetDirs = a.dirs()
	r.assets = stamp{}
	if err == nil && len(r.damaged) == 0 && now.settled(time.Now()) {
		r.assets = now
	}
}

// loseAssets notes that none of the assets can be read.
func (r *record) loseAssets() {
	r.assets, r.assetDirs, r.damaged = stamp{}, nil, r.volumes
	r.checkpoint.Digest = combine(r.manifest, nil)
}

// sight looks at one file, unless it is still what it was. A file that can't be read is no manifest for anyone: Altered.
// Where the name alone does not make it ours, somebody else's pod is none of our files: Missing.
func (r *record) sight(dir *os.Root, last sight, ours bool) (sight, error) {
	info, err := dir.Lstat(r.name())
	if err != nil {
		return sight{}, ignoreMissing(err)
	}
	now := sight{stamp: stampOf(info), file: checkpoint.Altered}
	if last.settled && last.stamp == now.stamp {
		return last, nil
	}
	data, err := readFile(dir, r.name())
	manifest, nonce := withoutNonce(data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sight{}, nil
	case err != nil:
		return now, nil // and not settled: the next look may have more luck
	case bytes.Equal(manifest, r.manifest):
		now.file, now.nonce = checkpoint.Intact, nonce
	case !ours && isForeign(data):
		now.file, now.foreign = checkpoint.Missing, true
	}
	now.settled = now.stamp.settled(time.Now())
	return now, nil
}

func isForeign(data []byte) bool {
	pod, marked := declaredPod(data)
	return pod != podName{} && !marked
}

// write makes the record's file in a directory hold its manifest, with any nonce. It is not written if it does.
func (r *record) write(dir *os.Root, nonce int) error {
	now, err := r.sight(dir, sight{}, true)
	if err != nil || now.file == checkpoint.Intact {
		return err
	}
	return replaceFile(dir, r.name(), withNonce(r.manifest, nonce))
}

func (r *record) writeStored(inactive *os.Root) error { return r.write(inactive, 0) }

func (r *record) remove(dir *os.Root) error { return removeFile(dir, r.name()) }
