package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// keepPrevious makes the present checkpoint the generation before, if next is to replace it and is of another pod. That
// is a checkpoint like any other, with assets of its own: the volumes of the two may have the same names and other
// contents. One that is no longer whole is no use to fall back to, and nor is one that failed.
func (s *Store) keepPrevious(next *record) error {
	return s.withAssets(next, func(a assetDir) error {
		present := s.records[next.name()] // which an interrupted save may just have become
		if present == nil || present.checkpoint.ParentUID == next.checkpoint.ParentUID {
			return nil
		}
		before := s.records[present.key().other().FileName()]
		if before != nil && (before.active.file != checkpoint.Missing || s.failed(present)) {
			return nil
		}
		snapshot, err := a.read(present.volumes)
		if errors.Is(err, errNotWhole) {
			return nil
		}
		if err != nil {
			return err
		}
		previous, err := present.asPrevious(s.dirs.Assets)
		if err != nil {
			return err
		}
		return s.save(previous, snapshot)
	})
}

// failed says whether the checkpoint is marked as one that did not come up.
func (s *Store) failed(r *record) bool {
	mark := s.marks[r.checkpoint.Lineage].Failed
	return mark != "" && mark == r.checkpoint.Manifest
}

// asPrevious is the same checkpoint as the generation before. Its manifest differs in nothing but where the assets lie.
func (r *record) asPrevious(assetsDir string) (*record, error) {
	key := r.key().other()
	from, err := jsonPrefix(filepath.Join(assetsDir, r.base()))
	if err != nil {
		return nil, err
	}
	to, err := jsonPrefix(filepath.Join(assetsDir, key.base()))
	if err != nil {
		return nil, err
	}
	previous, err := parse(bytes.ReplaceAll(r.manifest, from, to), true, assetsDir)
	if err == nil && !slices.Equal(previous.volumes, r.volumes) {
		err = errors.New("its manifest does not mount its assets as we write it")
	}
	return previous, err
}

// jsonPrefix is how a string of JSON begins that names something in a directory.
func jsonPrefix(dir string) ([]byte, error) {
	encoded, err := json.Marshal(dir + "/")
	return bytes.TrimSuffix(encoded, []byte(`"`)), err
}
