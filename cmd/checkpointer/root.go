package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

// version is stamped by the linker.
var version = "devel"

// lookupEnv is os.LookupEnv, or a test's.
type lookupEnv func(string) (string, bool)

// execute runs the command line and returns the exit code. An error is one line on stderr. One that comes before a
// command has begun is about the command line. An error may quote names from elsewhere, which must not command a
// terminal.
func execute(ctx context.Context, args []string, env lookupEnv, stdout, stderr io.Writer) int {
	root := newRootCommand(env)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	begun := false
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	err := root.ExecuteContext(ctx)
	if err != nil && !begun {
		err = usage(err)
	}
	if err != nil {
		fmt.Fprintln(stderr, "checkpointer:", terminal.Lines(err.Error()))
	}
	return exitCode(err)
}

func newRootCommand(env lookupEnv) *cobra.Command {
	root := newRunCommand(env)
	root.Use = "checkpointer"
	root.Short = "Keep the annotated pods of this node alive when no API server can be reached"
	root.Long = root.Short + ".\n\nWithout a command it runs the agent: see `checkpointer run --help`."
	root.Version = version
	root.SetVersionTemplate(versionLine())
	root.SilenceErrors, root.SilenceUsage = true, true
	root.AddCommand(newRunCommand(env), newRenderCommand(), newStatusCommand(env), newDoctorCommand(env), newCleanupCommand(env), newProbeCommand(env), newCopyEnvCommand(), newVersionCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args, cmd.RunE = cobra.ArbitraryArgs, nameShell
		}
	}
	return root
}

// nameShell is what completion does without a shell that it knows: cobra's own would print help, and exit with 0.
func nameShell(cmd *cobra.Command, _ []string) error {
	var shells []string
	for _, shell := range cmd.Commands() {
		shells = append(shells, shell.Name())
	}
	return usage(fmt.Errorf("completion needs the name of a shell: %s", strings.Join(shells, ", ")))
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprint(cmd.OutOrStdout(), versionLine())
		},
	}
}

func versionLine() string {
	return fmt.Sprintf("checkpointer %s %s %s/%s%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, kubernetesVersion())
}

// kubernetesVersion tells which API types the binary was built with: newer fields of a pod are unknown to it.
func kubernetesVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/api" {
			return " k8s.io/api " + module.Version
		}
	}
	return ""
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command or argument %q; %s --help lists what there is", args[0], cmd.Root().Name())
	}
	return nil
}

// environment gives each flag that was not set the value of its CHECKPOINTER_ variable, if there is one.
func environment(flags *pflag.FlagSet, env lookupEnv) (err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value, ok := env(name)
		if err != nil || flag.Changed || !ok || flag.Name == "help" {
			return
		}
		if bad := flags.Set(flag.Name, value); bad != nil {
			err = usage(fmt.Errorf("the environment variable %s has an invalid value %q for --%s: %w", name, value, flag.Name, bad))
		}
	})
	return err
}

func environmentName(flag string) string {
	return "CHECKPOINTER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
