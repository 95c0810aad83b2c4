package manifest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ReadStore is a store to look at, also while another process writes to it: nothing is made, swept or finished. Only
// List, Foreign, Node, Pod and MissingAssets may be called.
func ReadStore(dirs Dirs) *Store {
	s := newStore(dirs)
	s.readOnly = true
	return s
}

// openOurs opens a directory that is ours, and makes it if need be. It is nil, without an error, for a store that may not.
func (s *Store) openOurs(path string) (*os.Root, error) {
	if !s.readOnly {
		return openOrCreate(path)
	}
	root, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return root, err
}

// Pod is the pod that a checkpoint declares, as last listed; false if there is no such checkpoint.
func (s *Store) Pod(key Key) (*corev1.Pod, bool) {
	r := s.records[key.FileName()]
	if r == nil {
		return nil, false
	}
	var pod corev1.Pod
	return &pod, json.Unmarshal(r.manifest, &pod) == nil
}

// MissingAssets names the volumes that a checkpoint mounts and that are not whole on disk.
func (s *Store) MissingAssets(key Key) (volumes []string, err error) {
	r, err := s.find(key)
	if err != nil {
		return nil, err
	}
	volumes = slices.Clone(r.volumes)
	err = s.inAssets(func(root *os.Root) error {
		volumes = r.missing(assetDir{root, r.base()})
		return nil
	})
	return volumes, err
}
