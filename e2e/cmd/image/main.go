// Command image writes the checkpointer's container image, as the Dockerfile describes it, without a container engine.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/image"
)

func main() {
	name := flag.String("name", "pod-checkpointer/pod-checkpointer:dev", "reference of the image")
	dockerfile := flag.String("file", "../Dockerfile", "the Dockerfile")
	out := flag.String("out", "../bin/image.tar", "the archive to write")
	flag.Parse()
	if err := write(*name, *dockerfile, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	if path, err := filepath.Abs(*out); err == nil {
		*out = path
	}
	fmt.Printf("%s is in %s\n", *name, *out)
}

func write(name, dockerfile, out string) error {
	built, err := image.FromDockerfile(name, dockerfile)
	if err != nil {
		return err
	}
	return built.Write(out)
}
