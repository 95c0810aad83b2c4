package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// RuntimeFacts is what the container runtime has.
type RuntimeFacts struct {
	State     checkpoint.Runtime
	Sandboxes []checkpoint.Sandbox // all of them, while State is Known
	Detail    string               // for people
}

// Runtime watches a container runtime over CRI v1.
type Runtime struct {
	endpoint string
	timeout  time.Duration
	log      zerolog.Logger

	last        RuntimeFacts
	sandboxes   map[string]checkpoint.Sandbox
	unsupported bool // this runtime sends no events
}

// endpoints are the sockets of containerd, CRI-O, k3s and k0s.
var endpoints = []string{
	"/run/containerd/containerd.sock",
	"/run/crio/crio.sock",
	"/run/k3s/containerd/containerd.sock",
	"/run/k0s/containerd.sock",
}

// FindRuntimeEndpoint is the first of the usual sockets that exists, as unix:///path.
func FindRuntimeEndpoint() (string, error) {
	for _, path := range endpoints {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			return "unix://" + path, nil
		}
	}
	return "", fmt.Errorf("no container runtime found: none of %s is a socket; --container-runtime-endpoint names another",
		strings.Join(endpoints, ", "))
}

// NewRuntime watches the runtime at endpoint, as unix:///path. timeout bounds each call.
func NewRuntime(endpoint string, timeout time.Duration, log zerolog.Logger) *Runtime {
	return &Runtime{endpoint: endpoint, timeout: timeout, log: log}
}

// StopSandbox stops a sandbox and what runs in it. It is one of the agent's few writes to the runtime.
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	conn, err := dial(r.endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	_, err = cri.NewRuntimeServiceClient(conn).StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

// Run reports facts until ctx ends. report must not block.
func (r *Runtime) Run(ctx context.Context, report func(RuntimeFacts)) {
	retry := newBackoff(2 * time.Second)
	for ctx.Err() == nil {
		err := r.connect(ctx, retry, report)
		if ctx.Err() != nil {
			return
		}
		if !r.unsupported {
			r.tell(report, RuntimeFacts{State: checkpoint.RuntimeUnknown, Detail: err.Error()})
		}
		pause(ctx, retry.NextBackOff(), nil)
	}
}

// connect follows the runtime over one connection until it breaks. Events only say which sandboxes to look at again:
// they may be lost, doubled, or come late.
func (r *Runtime) connect(ctx context.Context, retry interface{ Reset() }, report func(RuntimeFacts)) error {
	conn, err := dial(r.endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := cri.NewRuntimeServiceClient(conn)
	stream, err := client.GetContainerEvents(ctx, &cri.GetEventsRequest{})
	if err != nil {
		return err
	}
	start, touched := time.Now(), newTouched()
	go func() { cancel(touched.drain(stream)) }()

	if err := r.listAll(ctx, client); err != nil {
		return err
	}
	r.tell(report, RuntimeFacts{State: checkpoint.RuntimeKnown, Detail: r.endpoint})
	// The call above returns before the runtime has subscribed us. One more list covers what fell in between.
	again := time.NewTimer(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.ended(context.Cause(ctx), start)
		case <-touched.some:
			err = r.refresh(ctx, client, touched.take())
		case <-again.C:
			retry.Reset()
			err = r.listAll(ctx, client)
		}
		if err != nil {
			return err
		}
		r.tell(report, RuntimeFacts{State: checkpoint.RuntimeKnown, Detail: r.endpoint})
	}
}

// ended tells a runtime without events, whose stream ends at once and without an error, from a broken connection.
func (r *Runtime) ended(err error, start time.Time) error {
	if errors.Is(err, io.EOF) && time.Since(start) < time.Second && !r.unsupported {
		r.unsupported = true
		r.log.Warn().Str("endpoint", r.endpoint).
			Msg("the container runtime sends no events, so it is listed again and again; CRI-O sends them with enable_pod_events = true")
	}
	return err
}

// manyTouched is from when on one list of everything is cheaper than one for each sandbox.
const manyTouched = 8

func (r *Runtime) refresh(ctx context.Context, client cri.RuntimeServiceClient, ids []string) error {
	if len(ids) > manyTouched || slices.Contains(ids, "") {
		return r.listAll(ctx, client)
	}
	for _, id := range ids {
		fresh, err := r.list(ctx, client, id)
		if err != nil {
			return err
		}
		delete(r.sandboxes, id)
		maps.Copy(r.sandboxes, fresh)
	}
	return nil
}

func (r *Runtime) listAll(ctx context.Context, client cri.RuntimeServiceClient) (err error) {
	r.sandboxes, err = r.list(ctx, client, "")
	return err
}

// list reads one sandbox and its containers, or all if id is empty.
func (r *Runtime) list(ctx context.Context, client cri.RuntimeServiceClient, id string) (map[string]checkpoint.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	sandboxes, err := client.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{Id: id}})
	if err != nil {
		return nil, err
	}
	containers, err := client.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{PodSandboxId: id}})
	if err != nil {
		return nil, err
	}
	found := make(map[string]checkpoint.Sandbox, len(sandboxes.Items))
	for _, s := range sandboxes.Items {
		found[s.Id] = sandboxOf(s)
	}
	for _, c := range containers.Containers {
		if s, ok := found[c.PodSandboxId]; ok {
			s.Containers = append(s.Containers, checkpoint.Container{Name: c.GetMetadata().GetName(), State: stateOf(c.State)})
			found[c.PodSandboxId] = s
		}
	}
	return found, nil
}

// tell reports facts that differ from the last, and logs a change of state.
func (r *Runtime) tell(report func(RuntimeFacts), facts RuntimeFacts) {
	if facts.State == checkpoint.RuntimeKnown {
		facts.Sandboxes = slices.SortedFunc(maps.Values(r.sandboxes), func(a, b checkpoint.Sandbox) int { return strings.Compare(a.ID, b.ID) })
	}
	if facts.State != r.last.State {
		if facts.State == checkpoint.RuntimeKnown {
			r.log.Info().Str("endpoint", r.endpoint).Msg("container runtime answers")
		} else {
			r.log.Warn().Str("detail", facts.Detail).Msg("container runtime does not answer: nothing is activated or withdrawn until it does")
		}
	} else if slices.EqualFunc(facts.Sandboxes, r.last.Sandboxes, sameSandbox) && r.last.Detail != "" {
		return
	}
	r.last = facts
	report(facts)
}
