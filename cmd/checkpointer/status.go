package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// place is where the agent of this node keeps what it keeps: the flags of the commands that look at it.
type place struct {
	dirs     manifest.Dirs
	lockFile string
}

func (p *place) add(flags *pflag.FlagSet) {
	addDirs(flags, &p.dirs)
	addLockFile(flags, &p.lockFile)
}

func (p *place) validate() error {
	return cmp.Or(validateDirs(p.dirs), validatePath("lock-file", p.lockFile))
}

func newStatusCommand(env lookupEnv) *cobra.Command {
	var p place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show each checkpoint of this node, where it stands and why",
		Long: `Show each checkpoint of this node, where it stands and why. No API server is asked, and any copy of the agent can be
asked, or the host: it is what the agent that leads wrote last, beside the lock, or without one what lies on disk.

docs/state-machine.md says what each phase and reason means, docs/commands/status.md what each field of --json is.

Exit code 0: it is on stdout. 1: it can't be read. 2: a flag or a variable is wrong.`,
		Example: `  kubectl exec -n kube-system pod-checkpointer-x7k2p -- /checkpointer status
  checkpointer status --json | jq -r '.lineages[] | select(.phase == "active") | .pod + " " + .reason'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := environment(cmd.Flags(), env); err != nil {
				return err
			}
			if err := p.validate(); err != nil {
				return usage(err)
			}
			report, err := p.report()
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), report)
			}
			return report.Print(cmd.OutOrStdout(), time.Now())
		},
	}
	p.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// report is what the last agent told, or what the disk tells if none has since boot.
func (p *place) report() (status.Report, error) {
	held, err := status.Held(p.lockFile)
	if err != nil {
		return status.Report{}, fmt.Errorf("can't tell whether an agent runs: %w", err)
	}
	report, err := status.Read(status.File(p.lockFile))
	if errors.Is(err, fs.ErrNotExist) {
		report, err = p.fromDisk()
	}
	report.Lock = status.Lock{Path: p.lockFile, Held: held}
	return report, err
}

func (p *place) fromDisk() (status.Report, error) {
	unknown := status.Source{State: "unknown"}
	report := status.Report{Format: status.Format, API: unknown, Kubelet: unknown, Runtime: unknown}
	disk, err := manifest.ReadStore(p.dirs).List()
	report.Lineages = status.FromDisk(disk)
	return report, err
}

func writeJSON(w io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func validateDirs(dirs manifest.Dirs) error {
	return cmp.Or(validatePath("assets-dir", dirs.Assets), validatePath("inactive-dir", dirs.Inactive), validatePath("manifests-dir", dirs.Manifests))
}

func validatePath(flag, path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("--%s must be an absolute path, not %q", flag, path)
	}
	return nil
}
