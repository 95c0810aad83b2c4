package kubelet

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// RuntimeFacts is what the container runtime has.
type RuntimeFacts struct {
	State     checkpoint.Runtime
	Sandboxes []checkpoint.Sandbox // all of them by ID, while State is Known
	Detail    string               // for people
}

// Runtime watches a container runtime over CRI v1.
type Runtime struct {
	endpoint string
	timeout  time.Duration
	ping     time.Duration // of a connection on which nothing happens
	log      zerolog.Logger

	told      bool // last was reported
	last      RuntimeFacts
	sandboxes map[string]checkpoint.Sandbox
	noEvents  bool // this runtime sends no events
}

// pingAfter is a little more than what a gRPC server tolerates by default (google.golang.org/grpc/keepalive.
// EnforcementPolicy.MinTime): one that is asked more often hangs up. Every call is bounded by a timeout of its own, so
// that a runtime which hangs stays unnoticed for this long only while nobody wants anything of it.
const pingAfter = 5*time.Minute + 10*time.Second

// NewRuntime watches the runtime at endpoint, as unix:///path. timeout bounds each call.
func NewRuntime(endpoint string, timeout time.Duration, log zerolog.Logger) *Runtime {
	return &Runtime{endpoint: endpoint, timeout: timeout, ping: pingAfter, log: log}
}

// errNoEvents ends a connection on which there is nothing to wait for.
var errNoEvents = errors.New("the container runtime sends no events")

// Run reports facts until ctx ends. report must not block for long; the runtime does not suffer if it does.
func (r *Runtime) Run(ctx context.Context, report func(RuntimeFacts)) {
	retry := newBackoff()
	for ctx.Err() == nil {
		err := r.connect(ctx, retry, report)
		if ctx.Err() != nil {
			return
		}
		wait := retry.NextBackOff()
		if !errors.Is(err, errNoEvents) {
			r.tell(report, RuntimeFacts{State: checkpoint.RuntimeUnknown, Detail: err.Error()})
			wait = min(wait, longestGone)
		}
		pause(ctx, wait, nil)
	}
}

// settled is how long an event stream must last to be one.
const settled = time.Second

// connect follows the runtime over one connection until it breaks. Events only say which sandboxes to look at again:
// they may be lost, doubled, or come late.
func (r *Runtime) connect(ctx context.Context, retry interface{ Reset() }, report func(RuntimeFacts)) error {
	conn, err := dial(r.endpoint, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: r.ping, Timeout: r.timeout}))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := cri.NewRuntimeServiceClient(conn)
	stream, err := client.GetContainerEvents(ctx, &cri.GetEventsRequest{})
	if err != nil {
		return err
	}
	start, touched := time.Now(), newTouched()
	go touched.drain(stream) // ends with the connection

	// Events or not, a list is the truth of now; the end of the stream must not spoil it.
	if err := r.listAll(ctx, client); err != nil {
		return err
	}
	if r.tellSandboxes(report) && r.noEvents {
		retry.Reset() // things are moving: look again soon
	}
	// The call above returns before the runtime has subscribed us. One more list covers what fell in between.
	again := time.NewTimer(settled)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err = <-touched.ended:
			if !errors.Is(err, io.EOF) || time.Since(start) > settled {
				return err
			}
			if err = r.listAll(ctx, client); err == nil { // it is there, and not about to go
				err = r.withoutEvents()
			}
		case <-touched.some:
			err = r.refresh(ctx, client, touched.take())
		case <-again.C:
			retry.Reset()
			r.noEvents = false
			err = r.listAll(ctx, client)
		}
		if err != nil {
			return err
		}
		r.tellSandboxes(report)
	}
}

// withoutEvents says once that the stream ended at once and without an error, as it does where events are turned off
// (github.com/cri-o/cri-o/server.Server.GetContainerEvents).
func (r *Runtime) withoutEvents() error {
	if !r.noEvents {
		r.noEvents = true
		r.log.Warn().Str("endpoint", r.endpoint).
			Msg("the container runtime sends no events, so it is listed again and again; CRI-O sends them with enable_pod_events = true")
	}
	return errNoEvents
}

func (r *Runtime) refresh(ctx context.Context, client cri.RuntimeServiceClient, ids []string) error {
	if slices.Contains(ids, anySandbox) {
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

func (r *Runtime) listAll(ctx context.Context, client cri.RuntimeServiceClient) error {
	all, err := r.list(ctx, client, anySandbox)
	if err == nil {
		r.sandboxes = all
	}
	return err
}

// list reads one sandbox and its containers, or all of them.
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
	return join(sandboxes.Items, containers.Containers), nil
}

func (r *Runtime) tellSandboxes(report func(RuntimeFacts)) (news bool) {
	return r.tell(report, RuntimeFacts{
		State:  checkpoint.RuntimeKnown,
		Detail: r.endpoint,
		Sandboxes: slices.SortedFunc(maps.Values(r.sandboxes), func(a, b checkpoint.Sandbox) int {
			return strings.Compare(a.ID, b.ID)
		}),
	})
}

// tell reports facts that differ from the last, and logs a change of state.
func (r *Runtime) tell(report func(RuntimeFacts), facts RuntimeFacts) (news bool) {
	if r.told && facts.State == r.last.State && slices.EqualFunc(facts.Sandboxes, r.last.Sandboxes, sameSandbox) {
		return false
	}
	if !r.told || facts.State != r.last.State {
		r.logState(facts)
	}
	r.told, r.last = true, facts
	report(facts)
	return true
}

func (r *Runtime) logState(facts RuntimeFacts) {
	if facts.State == checkpoint.RuntimeKnown {
		r.log.Info().Str("endpoint", r.endpoint).Msg("container runtime answers: what is down can be activated")
		return
	}
	r.log.Warn().Str("endpoint", r.endpoint).Str("detail", facts.Detail).
		Msg("container runtime does not answer: nothing is activated or withdrawn until it does")
}
