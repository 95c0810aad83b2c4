package manifest

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// podName names a static pod; the kubelet adds the node's name to it.
type podName struct{ namespace, name string }

// foreign is a file in the static pod directory that is not where one of ours should be.
type foreign struct {
	stamp   stamp
	settled bool
	pod     podName // zero: no pod
}

// Foreign names the files in the static pod directory, as last listed, that declare the same pod as the checkpoint and are
// not its manifest: somebody else's, or a copy of ours. The kubelet would run now one and now the other.
func (s *Store) Foreign(key Key) []string {
	r := s.records[key.FileName()]
	if r == nil {
		return nil
	}
	var files []string
	for _, file := range slices.Sorted(maps.Keys(s.foreign)) {
		if s.foreign[file].pod == r.pod {
			files = append(files, file)
		}
	}
	return files
}

// lookForeign reads the manifests of others, as far as they changed.
func (s *Store) lookForeign(manifests *os.Root) error {
	names, err := readNames(manifests, ".")
	if err != nil {
		return err
	}
	seen := make(map[string]foreign)
	for _, name := range names {
		r := s.records[name]
		if strings.HasPrefix(name, ".") || r != nil && !r.active.foreign { // the kubelet ignores it, or it is ours
			continue
		}
		if f, err := look(manifests, name, s.foreign[name]); err == nil {
			seen[name] = f
		}
	}
	s.foreign = seen
	return nil
}

// look reads a manifest, unless it is still what it was. It follows a symlink as the kubelet does.
func look(dir *os.Root, name string, last foreign) (foreign, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return foreign{}, err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := filepath.EvalSymlinks(filepath.Join(dir.Name(), name))
		if err != nil {
			return foreign{}, err
		}
		root, err := os.OpenRoot(filepath.Dir(target))
		if err != nil {
			return foreign{}, err
		}
		defer root.Close()
		return look(root, filepath.Base(target), last)
	}
	now := foreign{stamp: stampOf(info)}
	if last.settled && last.stamp == now.stamp {
		return last, nil
	}
	data, err := readFile(dir, name)
	if err != nil {
		return foreign{}, err
	}
	now.settled = now.stamp.settled(time.Now())
	now.pod, _ = declaredPod(data)
	return now, nil
}

// declaredPod names the pod that a manifest declares, zero if it declares none, and says whether it has our mark.
func declaredPod(data []byte) (pod podName, marked bool) {
	if !bytes.Contains(data, []byte("kind")) || !bytes.Contains(data, []byte("Pod")) {
		return podName{}, false // spare the parser what is noise
	}
	var object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Namespace   string            `json:"namespace"`
			Name        string            `json:"name"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(data, &object); err != nil || object.Kind != "Pod" {
		return podName{}, false
	}
	_, marked = object.Metadata.Annotations[AnnotationCheckpointOf]
	// k8s.io/kubernetes/pkg/kubelet/config.applyDefaults: a static pod without a namespace is in "default".
	return podName{cmp.Or(object.Metadata.Namespace, "default"), object.Metadata.Name}, marked
}
