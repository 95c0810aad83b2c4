package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/doctor"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// doctorTimeout is how long everything that is asked may take. An API server that is away must not hold up the rest.
const doctorTimeout = 20 * time.Second

// apiPatience is how long the API server may take.
const apiPatience = 5 * time.Second

// examination is the flags of `checkpointer doctor`.
type examination struct {
	place
	nodeName, kubeconfig, runtime string
	json                          bool
}

// diagnosis is what `checkpointer doctor --json` prints.
type diagnosis struct {
	Survives    bool             `json:"survives"`
	Checkpoints int              `json:"checkpoints"`
	Findings    []doctor.Finding `json:"findings"`
}

func newDoctorCommand(env lookupEnv) *cobra.Command {
	var e examination
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say whether this node would survive a power cut now, and what stands in the way",
		Long: `Say whether this node would survive a power cut now, and what stands in the way. It changes nothing, works without the
API server, and in any copy of the agent or on the host.

docs/commands/doctor.md lists what is looked for. Exit code 0: the node would survive; warnings may be on stdout. 1: it
would not, or nobody can tell. 2: a flag or a variable is wrong.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := environment(cmd.Flags(), env); err != nil {
				return err
			}
			if err := cmp.Or(e.validate(), validatePath("kubeconfig", e.kubeconfig), validateEndpoint(e.runtime)); err != nil {
				return usage(err)
			}
			found, err := e.examine(cmd.Context())
			if err != nil {
				return err
			}
			if e.json {
				err = writeJSON(cmd.OutOrStdout(), found)
			} else {
				err = doctor.Print(cmd.OutOrStdout(), found.Findings, found.Checkpoints, isTerminal(cmd.OutOrStdout()))
			}
			if err == nil && !found.Survives {
				err = exitError{code: exitFailure, err: errors.New("this node would not survive a power cut now: see above")}
			}
			return err
		},
	}
	flags := cmd.Flags()
	e.add(flags)
	nodeName, _ := env("NODE_NAME")
	flags.StringVar(&e.nodeName, "node-name", nodeName, "name of this node's Node object; by default NODE_NAME, or what the agent told")
	addKubeconfig(flags, &e.kubeconfig)
	addRuntimeEndpoint(flags, &e.runtime)
	flags.BoolVar(&e.json, "json", false, "print JSON")
	return cmd
}

func (e *examination) examine(ctx context.Context) (diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	held, err := status.Held(e.lockFile)
	if err != nil {
		return diagnosis{}, err
	}
	told := (*status.Report)(nil)
	if report, err := status.Read(status.File(e.lockFile)); err == nil {
		told = &report
		e.nodeName = cmp.Or(e.nodeName, report.Agent.Node)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return diagnosis{}, err
	}
	p := doctor.Place{NodeName: e.nodeName, Dirs: e.dirs, Kubeconfig: e.kubeconfig}
	p.Runtime, p.RuntimeErr = findRuntime(e.runtime)
	if api, err := apiclient.New(apiclient.Config{Kubeconfig: e.kubeconfig, NodeName: e.nodeName}, zerolog.Nop()); err == nil && e.nodeName != "" {
		p.NodeUID = func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, apiPatience)
			defer cancel()
			return api.NodeUID(ctx)
		}
	}
	facts := doctor.Gather(ctx, p, told, held)
	found := doctor.Examine(facts)
	return diagnosis{Survives: doctor.Survives(found), Checkpoints: len(facts.Checkpoints), Findings: found}, nil
}
