// Command lab-build fills the cache with the programs that the end-to-end tests
// run: Kubernetes, containerd, etcd and crictl. Nothing happens when they're
// there already.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := binaries.Ensure(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}
