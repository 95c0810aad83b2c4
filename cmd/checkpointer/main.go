// Command checkpointer keeps the annotated pods of a node alive when no API server can be reached.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}
