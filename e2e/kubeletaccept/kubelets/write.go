package main

import (
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/kubeletaccept/generate"
	"github.com/pod-checkpointer/pod-checkpointer/internal/input"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// writer writes manifests for a kubelet of one version, a thousand to a directory.
type writer struct {
	root    string
	dirs    []string
	written int
	options manifest.Options
}

func write(root, version string, pods uint64, cases string) (dirs []string, written int, err error) {
	w := &writer{root: root, options: manifest.Options{
		AssetsDir:      "/etc/kubernetes/checkpoint-assets",
		NodeName:       generate.NodeName,
		KubeletVersion: "v" + version,
		AgentImage:     "example.com/checkpointer:1",
		ServiceHost:    "10.96.0.1",
		ServicePort:    "443",
	}}
	files, err := filepath.Glob(filepath.Join(cases, "*", "pod.yaml"))
	if err != nil || len(files) == 0 {
		return nil, 0, fmt.Errorf("no golden cases in %s (%w)", cases, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, 0, err
		}
		in, err := input.Parse(file, data)
		if err != nil {
			continue // a case of a refusal
		}
		if err := w.add(in.Pod, in.References); err != nil {
			return nil, 0, err
		}
	}
	for seed := range pods {
		c, err := generate.New(seed)
		if err != nil {
			return nil, 0, err
		}
		if err := w.add(c.Pod, c.References); err != nil {
			return nil, 0, err
		}
	}
	return w.dirs, w.written, nil
}

// add converts a pod and writes its manifest, unless it is refused. The exposure of Secrets is accepted, so that old
// kubelets see variables from them too.
func (w *writer) add(pod *corev1.Pod, refs manifest.References) error {
	pod.Name = fmt.Sprintf("%s-%d", pod.Name, w.written)
	if pod.Annotations == nil {
		pod.Annotations = make(map[string]string)
	}
	pod.Annotations[manifest.AnnotationSecretEnv] = "inline"
	result, err := manifest.Convert(pod, refs, w.options)
	if err != nil {
		return nil
	}
	if w.written%1000 == 0 {
		dir := filepath.Join(w.root, fmt.Sprint(len(w.dirs)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		w.dirs = append(w.dirs, dir)
	}
	w.written++
	return os.WriteFile(filepath.Join(w.dirs[len(w.dirs)-1], pod.Name), result.Manifest, 0o600)
}
