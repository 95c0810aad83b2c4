package manifest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// The checkpointer of bootkube, whose successor ours is, kept a checkpoint in
//
//	<static pod directory>/<namespace>-<parent>.json
//	/etc/kubernetes/inactive-manifests/<namespace>-<parent>.json
//	/etc/kubernetes/checkpoint-secrets/<namespace>/<parent>/
//	/etc/kubernetes/checkpoint-configmaps/<namespace>/<parent>/
var predecessorAssets = []string{"checkpoint-secrets", "checkpoint-configmaps"} // beside the inactive directory

// RemovePredecessors removes all that a predecessor left on this node.
func (s *Store) RemovePredecessors() error {
	found := make(map[podName]bool)
	find := func(dir *os.Root) error {
		names, err := readNames(dir, ".")
		for _, name := range names {
			if parent, ok := predecessorOf(dir, name); ok {
				found[parent] = true
			}
		}
		return err
	}
	err := errors.Join(s.inManifests(find), s.inInactive(find))
	for parent := range found {
		err = errors.Join(err, s.removePredecessor(parent))
	}
	return err
}

// removePredecessor removes a predecessor's checkpoint of a parent.
func (s *Store) removePredecessor(parent podName) error {
	remove := func(dir *os.Root) error {
		name := parent.namespace + "-" + parent.name + ".json"
		if found, ok := predecessorOf(dir, name); !ok || found != parent {
			return nil
		}
		return removeFile(dir, name)
	}
	err := errors.Join(s.inManifests(remove), s.inInactive(remove))
	for _, assets := range predecessorAssets {
		err = errors.Join(err, removeBelow(filepath.Join(filepath.Dir(s.dirs.Inactive), assets), parent))
	}
	return err
}

// removeBelow removes <dir>/<namespace>/<name>, and <dir>/<namespace> if that was the last.
func removeBelow(dir string, parent podName) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	err = root.RemoveAll(filepath.Join(parent.namespace, parent.name))
	if err == nil {
		err = root.Remove(parent.namespace)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) {
		err = nil
	}
	return explain(dir, errors.Join(err, root.Close()))
}

// predecessorOf says of which parent a file is a predecessor's checkpoint: by its annotation and its name together.
func predecessorOf(dir *os.Root, name string) (parent podName, ok bool) {
	if !strings.HasSuffix(name, ".json") || mayBeOurs(name) {
		return podName{}, false
	}
	data, err := readFile(dir, name)
	if err != nil {
		return podName{}, false
	}
	var pod corev1.Pod
	if err := json.Unmarshal(data, &pod); err != nil {
		return podName{}, false
	}
	parent = podName{pod.Namespace, pod.Annotations[AnnotationCheckpointOf]}
	ok = isComponent(parent.namespace) && isComponent(parent.name) && name == parent.namespace+"-"+parent.name+".json"
	return parent, ok
}
