package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// newCopyEnvCommand is what the init container of a checkpoint runs that has variables from Secrets: the image holds no
// cp. A copy that was cut short is made again, because the container then starts again.
func newCopyEnvCommand() *cobra.Command {
	return &cobra.Command{
		Use:    manifest.EnvCommand + " FROM TO",
		Short:  "Copy a file; for the init container of checkpoints with variables from Secrets",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			return os.WriteFile(args[1], data, 0o600)
		},
	}
}
