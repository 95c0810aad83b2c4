package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/pod-checkpointer/pod-checkpointer/internal/probe"
	"github.com/pod-checkpointer/pod-checkpointer/internal/watch"
)

// role is what this copy of the agent does, for its probe.
type role struct {
	leading atomic.Bool
	pings   watch.Pings
}

// answer says what the copy does, or why it is no good any more.
func (r *role) answer(ctx context.Context) (string, error) {
	if !r.leading.Load() {
		return "standing by", nil
	}
	if err := r.pings.Ping(ctx); err != nil {
		return "", err
	}
	return "leading", nil
}

func newProbeCommand(env lookupEnv) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Say whether the agent in this container is alive; for an exec probe",
		Long: `Say whether the agent in this container is alive: it leads and its loop turns, or it stands by.

Exit code 0: it is, and stdout says what it does. 1: it is not, or none is there; stderr says which. The answer comes
within 8 seconds. No port is used: the agent listens on an abstract Unix socket that has the name of its PID namespace.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := environment(cmd.Flags(), env); err != nil {
				return err
			}
			if err := checkSocket(socket); err != nil {
				return usage(err)
			}
			doing, err := probe.Ask(cmd.Context(), socket)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), doing)
			return nil
		},
	}
	addProbeSocket(cmd.Flags(), &socket)
	return cmd
}
