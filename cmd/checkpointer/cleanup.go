package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/cleanup"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

// cleaner is the flags of `checkpointer cleanup`.
type cleaner struct {
	place
	runtime          string
	wait             time.Duration
	yes, predecessor bool

	podNamespace, podName string
}

func newCleanupCommand(env lookupEnv) *cobra.Command {
	var c cleaner
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove from this node what the agent keeps on it",
		Long: `Remove from this node what the agent keeps on it. It shows what it will delete, and asks on a terminal. What is not the
agent's own stays. It works while the agent runs: that gives its lock up until the cleanup has ended.

While the API server serves and wants the agent here, delete its DaemonSet instead: the agent then removes everything
itself, and else it would store everything again.

With --predecessor it removes what the checkpointer of bootkube left, and nothing of ours.

Exit code 0: nothing is left. 1: something is, or it was not confirmed. 2: a flag or a variable is wrong, or there is
no terminal to ask on and no --yes.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := environment(cmd.Flags(), env); err != nil {
				return err
			}
			if err := cmp.Or(c.validate(), validateEndpoint(c.runtime)); err != nil {
				return usage(err)
			}
			return c.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	c.podNamespace, _ = env("POD_NAMESPACE")
	c.podName, _ = env("POD_NAME")
	flags := cmd.Flags()
	c.add(flags)
	addRuntimeEndpoint(flags, &c.runtime)
	flags.DurationVar(&c.wait, "wait", time.Minute, "how long to wait for pods to stop, before what they mount is removed")
	flags.BoolVar(&c.yes, "yes", false, "do not ask")
	flags.BoolVar(&c.predecessor, "predecessor", false, "remove what the checkpointer of bootkube left, and nothing else")
	return cmd
}

func (c *cleaner) run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	if err := c.refuse(); err != nil {
		return err
	}
	paths, err := c.paths()
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		fmt.Fprintln(stdout, "nothing to remove")
		return nil
	}
	fmt.Fprintln(stdout, "to be removed:")
	for _, path := range paths {
		fmt.Fprintln(stdout, " ", terminal.Line(path))
	}
	if err := c.confirm(stdin, stdout); err != nil {
		return err
	}
	job := cleanup.Job{
		Dirs: c.dirs, LockFile: c.lockFile, Patience: c.wait, SelfNamespace: c.podNamespace, SelfName: c.podName,
		Progress: func(line string) { fmt.Fprintln(stdout, terminal.Line(line)) },
	}
	if endpoint, err := findRuntime(c.runtime); err == nil {
		job.Runtime = endpoint
	} else {
		job.Progress("not waiting for pods to stop: " + err.Error())
	}
	remove := job.Remove
	if c.predecessor {
		remove = job.RemovePredecessors
	}
	if err := job.Locked(ctx, remove); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "removed")
	return nil
}

// refuse says why a cleanup would be in vain: an agent that the API server wants here would store everything again.
func (c *cleaner) refuse() error {
	report, err := status.Read(status.File(c.lockFile))
	held, heldErr := status.Held(c.lockFile)
	if c.predecessor || err != nil || heldErr != nil || !held || report.API.State != checkpoint.APIServing.String() {
		return nil
	}
	return errors.New("the agent runs, and the API server serves and wants it here: it would store everything again. Delete its DaemonSet (kubectl delete -k deploy/base): the agent then removes everything itself, a minute later")
}

func (c *cleaner) paths() ([]string, error) {
	store := manifest.ReadStore(c.dirs)
	if c.predecessor {
		return store.PredecessorPaths()
	}
	if _, err := store.List(); err != nil {
		return nil, err
	}
	paths := store.Paths()
	if file := status.File(c.lockFile); fileExists(file) {
		paths = append(paths, file)
	}
	return paths, nil
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (c *cleaner) confirm(stdin io.Reader, stdout io.Writer) error {
	if c.yes {
		return nil
	}
	if file, ok := stdin.(*os.File); !ok || !isatty.IsTerminal(file.Fd()) {
		return usage(errors.New("there is no terminal to ask on: --yes removes what is listed above"))
	}
	fmt.Fprint(stdout, "remove it? [y/N] ")
	answer, _ := bufio.NewReader(stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("not confirmed: nothing is removed")
	}
	return nil
}
