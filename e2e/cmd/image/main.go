// Command image writes the checkpointer's container image, as the Dockerfile describes it, without a container engine.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/image"
)

func main() {
	name := flag.String("name", "pod-checkpointer/pod-checkpointer:dev", "reference of the image")
	architecture := flag.String("arch", "", "of the binary, as Go names it; this machine's by default")
	dockerfile := flag.String("file", "../Dockerfile", "the Dockerfile")
	context := flag.String("context", "..", "what its sources are relative to")
	out := flag.String("out", "../bin/image.tar", "the archive to write")
	labels := make(map[string]string)
	flag.Func("label", "a further label, as `name=value`", func(label string) error {
		key, value, ok := strings.Cut(label, "=")
		if !ok {
			return fmt.Errorf("it has no value")
		}
		labels[key] = value
		return nil
	})
	flag.Parse()
	built, err := image.FromDockerfile(*name, *dockerfile, *context)
	if err == nil {
		built.Architecture = *architecture
		maps.Copy(built.Labels, labels)
		err = built.Write(*out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	if path, err := filepath.Abs(*out); err == nil {
		*out = path
	}
	fmt.Printf("%s is in %s\n", *name, *out)
}
