//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "demo: a kubelet needs Linux")
	os.Exit(1)
}
