package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/internal/input"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

const exitRefused = 3 // of render: the pod can't be checkpointed

// renderer is the flags of `checkpointer render`.
type renderer struct {
	file    string
	output  string
	service string

	namespaces []string
	options    manifest.Options
}

func newRenderCommand() *cobra.Command {
	var r renderer
	cmd := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Show the static pod that a pod would become, or why it can't",
		Long: `Show the static pod that a pod would become, or why it can't. No API server is asked.

The file holds, as YAML or JSON documents, one pod or one Deployment, DaemonSet, StatefulSet, ReplicaSet or pod
template, and what it takes variables and claims from: ConfigMaps, Secrets, PersistentVolumeClaims and PersistentVolumes.
What it mounts of ConfigMaps and Secrets need not be there: the agent copies that from the running pod.

Exit code 0: the manifest is on stdout, warnings on stderr. 2: the input is wrong. 3: the pod is refused, for the
reasons on stderr.`,
		Example: `  kubectl get pod -n kube-system kube-proxy-x7k2p -o yaml | checkpointer render -f - -o yaml
  kustomize build . | checkpointer render -f - --node-name node1 --kubelet-version v1.37.2`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.run(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.file, "filename", "f", "", "file to read; - is stdin")
	flags.StringVarP(&r.output, "output", "o", "json", "json or yaml")
	flags.StringSliceVar(&r.namespaces, "namespaces", []string{"kube-system"}, "the agent's --namespaces")
	flags.StringVar(&r.options.NodeName, "node-name", "", "name of the node, which a static pod's name ends with")
	flags.StringVar(&r.options.KubeletVersion, "kubelet-version", "v1.37.0", "version of the node's kubelet")
	flags.StringVar(&r.options.AssetsDir, "assets-dir", "/etc/kubernetes/checkpoint-assets", "where on the node Secrets, ConfigMaps and tokens of checkpoints lie")
	flags.StringVar(&r.options.AgentImage, "agent-image", "pod-checkpointer/pod-checkpointer:dev", "the checkpointer's image, which hands variables from Secrets over")
	flags.StringVar(&r.service, "kubernetes-service", "", "address of the API server inside the cluster, as HOST:PORT")
	return cmd
}

func (r *renderer) run(stdin io.Reader, stdout, stderr io.Writer) error {
	if err := r.check(); err != nil {
		return usage(err)
	}
	source, data, err := r.read(stdin)
	if err != nil {
		return usage(err)
	}
	in, err := input.Parse(source, data)
	var result manifest.Result
	if err == nil {
		err = r.tell(stderr, in)
	}
	if err == nil {
		result, err = manifest.Convert(in.Pod, in.References, r.options)
	}
	if refusal := (*manifest.Refusal)(nil); errors.As(err, &refusal) {
		for _, reason := range refusal.Findings {
			fmt.Fprintln(stderr, "refused:", reason)
		}
		return exitError{exitRefused, fmt.Errorf("the pod of %s can't be checkpointed", source)}
	}
	if err != nil {
		return usage(err)
	}
	for _, warning := range result.Warnings {
		fmt.Fprintln(stderr, "warning:", warning)
	}
	return r.write(stdout, result.Manifest)
}

// tell says what Convert can't: what the reading of the input found, and whether the agent would look at the pod at all.
// What the pod refers to and the input does not hold is an error, unless it may be missing in the cluster, too.
func (r *renderer) tell(stderr io.Writer, in input.Input) error {
	pod := in.Pod
	if pod.Annotations[manifest.AnnotationCheckpoint] != "true" {
		fmt.Fprintf(stderr, "warning: metadata.annotations: the agent leaves the pod alone until it is annotated %s: \"true\"\n", manifest.AnnotationCheckpoint)
	}
	if !slices.Contains(r.namespaces, pod.Namespace) {
		fmt.Fprintf(stderr, "warning: metadata.namespace: the agent leaves the pods of %q alone unless its --namespaces names it\n", pod.Namespace)
	}
	var needed []string
	for _, missing := range in.Missing {
		if missing.Optional {
			fmt.Fprintln(stderr, terminal.Line(fmt.Sprintf("not in the input, and taken as missing: optional %s %s/%s", missing.Kind, missing.Namespace, missing.Name)))
			continue
		}
		needed = append(needed, fmt.Sprintf("%s %s/%s (kubectl get %s -n %s %s -o yaml)",
			missing.Kind, missing.Namespace, missing.Name, strings.ToLower(missing.Kind), missing.Namespace, missing.Name))
	}
	if len(needed) > 0 {
		return fmt.Errorf("not in the input, and the pod refers to it; append %s", strings.Join(needed, ", "))
	}
	return nil
}

func (r *renderer) check() error {
	if r.file == "" {
		return errors.New("no input: -f names a file, or - for stdin")
	}
	if r.output != "json" && r.output != "yaml" {
		return fmt.Errorf("--output must be json or yaml, not %q", r.output)
	}
	if _, err := utilversion.ParseGeneric(r.options.KubeletVersion); err != nil {
		return fmt.Errorf("--kubelet-version must be a version, such as v1.37.2, not %q", r.options.KubeletVersion)
	}
	if r.service == "" {
		return nil
	}
	var err error
	if r.options.ServiceHost, r.options.ServicePort, err = net.SplitHostPort(r.service); err != nil {
		return fmt.Errorf("--kubernetes-service must be HOST:PORT: %w", err)
	}
	return nil
}

func (r *renderer) read(stdin io.Reader) (source string, data []byte, err error) {
	if r.file == "-" {
		data, err = io.ReadAll(stdin)
		return "stdin", data, err
	}
	data, err = os.ReadFile(r.file)
	return r.file, data, err
}

func (r *renderer) write(stdout io.Writer, encoded []byte) error {
	if r.output == "yaml" {
		var err error
		if encoded, err = yaml.JSONToYAML(encoded); err != nil {
			return err
		}
	}
	_, err := stdout.Write(encoded)
	return err
}
