//go:build linux

// Command lab brings up a cluster with one Ready node and runs a command on the
// node's machine, or a shell. kubectl is the admin's there, and crictl talks to
// the node's containerd. Everything is gone when the command ends.
//
//	go run ./cmd/lab kubectl get pods -A
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

func main() {
	lab.Enter()
	if err := run(os.Args[1:]); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(command []string) error {
	ctx := context.Background()
	cluster, err := lab.StartCluster(ctx, lab.ClusterOptions{})
	if err != nil {
		return err
	}
	if _, err := lab.StartNode(ctx, cluster, lab.NodeOptions{}); err != nil {
		return err
	}
	if len(command) == 0 {
		command = []string{"bash"}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(
		os.Environ(),
		"KUBECONFIG="+cluster.AdminKubeconfig(),
		"CONTAINER_RUNTIME_ENDPOINT=unix://"+lab.ContainerdSocket,
	)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}
