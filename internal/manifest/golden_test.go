package manifest_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/internal/input"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// Only commit what -update changes if you understand what caused it and want it.
var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden converts testdata/<case>/pod.yaml, a pod or workload with what it refers to. What comes out is in want.yaml,
// with warnings and assets as comments, or in refused.txt.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/pod.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no cases", err)
	}
	for _, path := range inputs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in, err := input.Parse(path, data)
			var result manifest.Result
			if err == nil {
				result, err = manifest.Convert(in.Pod, in.References, goldenOptions(data))
			}
			if refusal := (*manifest.Refusal)(nil); errors.As(err, &refusal) {
				compare(t, dir, "refused.txt", "want.yaml", refusal.Error()+"\n")
			} else if err != nil {
				t.Fatal(err)
			} else {
				compare(t, dir, "want.yaml", "refused.txt", describe(t, result))
			}
		})
	}
}

// goldenOptions are those of an ordinary node, but for a line of the input such as "# kubelet-version: v1.34.4".
func goldenOptions(data []byte) manifest.Options {
	opts := manifest.Options{
		AssetsDir:      "/etc/kubernetes/checkpoint-assets",
		NodeName:       "node1",
		KubeletVersion: "v1.37.2",
		AgentImage:     "example.com/checkpointer:1",
		ServiceHost:    "10.96.0.1",
		ServicePort:    "443",
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "# kubelet-version":
			opts.KubeletVersion = value
		case "# agent-image":
			opts.AgentImage = value
		case "# service-host":
			opts.ServiceHost = value
		}
	}
	return opts
}

func describe(t *testing.T, result manifest.Result) string {
	t.Helper()
	var text bytes.Buffer
	for _, warning := range result.Warnings {
		fmt.Fprintln(&text, "# warning:", warning)
	}
	for _, asset := range result.Assets {
		fmt.Fprintf(&text, "# asset: %s %s%v\n", asset.Volume, asset.Plugin, asset.Dirs)
		for name, content := range asset.Files {
			fmt.Fprintf(&text, "#   %s: %q\n", name, content)
		}
	}
	converted, err := yaml.JSONToYAML(result.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	text.Write(converted)
	return text.String()
}

func compare(t *testing.T, dir, name, other, got string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if *update {
		_ = os.Remove(filepath.Join(dir, other))
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; got:\n%s", err, got)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}
