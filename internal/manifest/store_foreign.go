package manifest

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// podName names a static pod; the kubelet adds the node's name to it.
type podName struct{ namespace, name string }

// foreign is somebody else's file in the static pod directory.
type foreign struct {
	stamp   stamp
	settled bool
	pod     podName // zero: no pod
}

// Foreign names the files in the static pod directory, as last listed, that are not ours and declare the same pod as the
// checkpoint. The kubelet would run now one and now the other.
func (s *Store) Foreign(namespace, name string) []string {
	r := s.records[FileName(namespace, name)]
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
		if strings.HasPrefix(name, ".") { // the kubelet ignores it
			continue
		}
		if r := s.records[name]; r != nil && !r.active.foreign {
			continue
		}
		info, err := manifests.Lstat(name)
		if err != nil {
			continue
		}
		f := foreign{stamp: stampOf(info)}
		if last := s.foreign[name]; last.settled && last.stamp == f.stamp {
			f = last
		} else if data, err := readFile(manifests, name); err == nil {
			f.settled = f.stamp.settled(time.Now())
			f.pod = declaredPod(data)
		}
		seen[name] = f
	}
	s.foreign = seen
	return nil
}

// declaredPod names the pod that a manifest of somebody else declares; zero for one with the mark of a checkpoint, and
// for what is no pod.
func declaredPod(data []byte) podName {
	if !bytes.Contains(data, []byte("kind")) || !bytes.Contains(data, []byte("Pod")) {
		return podName{} // spare the parser what is noise
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
		return podName{}
	}
	if _, ours := object.Metadata.Annotations[AnnotationCheckpointOf]; ours {
		return podName{}
	}
	// k8s.io/kubernetes/pkg/kubelet/config.applyDefaults: a static pod without a namespace is in "default".
	return podName{cmp.Or(object.Metadata.Namespace, "default"), object.Metadata.Name}
}
