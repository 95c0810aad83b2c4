package kubelet

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// PodsFacts is what the kubelet says that it manages.
type PodsFacts struct {
	State   checkpoint.Kubelet
	Managed map[checkpoint.UID]checkpoint.Managed // while State is Synced
	Evicted map[checkpoint.UID]bool               // while State is Synced: by its own word, which an older kubelet does not give
	Detail  string                                // for people
}

// Pods watches the kubelet's Pods API (k8s.io/kubelet/pkg/apis/pods/v1alpha1, on by default from Kubernetes 1.37). It
// answers FailedPrecondition until the kubelet has seen the API server once since its own start, which is the very fact
// that recovery rests on; nothing announces its end, so that it is asked again until then. An older kubelet is asked by
// podresources instead.
type Pods struct {
	directory  string        // of the socket of the Pods API
	resources  string        // of that of podresources
	patience   time.Duration // with a kubelet that does not tell, or not all
	log        zerolog.Logger
	kick       chan struct{}
	apiServing atomic.Bool
	heard      heard

	told bool // last was reported
	last PodsFacts
}

const (
	askSoon  = 250 * time.Millisecond // while the API server serves: the kubelet is about to see it
	askLater = 2 * time.Second
)

// NewPods watches the socket below the kubelet's root directory.
func NewPods(kubeletDir string, log zerolog.Logger) *Pods {
	return &Pods{
		directory: filepath.Join(kubeletDir, "pods-api"), resources: filepath.Join(kubeletDir, "pod-resources"),
		patience: answerTimeout, log: log, kick: make(chan struct{}, 1),
	}
}

// Kick has the kubelet asked again now, if it is waited for. It never blocks.
func (p *Pods) Kick() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// APIServing says how soon it is worth asking again.
func (p *Pods) APIServing(serving bool) {
	if p.apiServing.Swap(serving) != serving && serving {
		p.Kick()
	}
}

// Run reports facts until ctx ends. report must not block. A kubelet without the directory of a socket is not asked
// again before a Kick; Volumes gives it when the directory or the socket is created.
func (p *Pods) Run(ctx context.Context, report func(PodsFacts)) {
	retry := newBackoff()
	for ctx.Err() == nil {
		ask := p.connect
		if missing(p.directory) {
			ask = p.connectByName
		}
		if missing(p.directory) && missing(p.resources) {
			p.tell(report, PodsFacts{State: checkpoint.KubeletAbsent, Detail: "neither " + p.directory + " nor " + p.resources + " exists"})
			select {
			case <-ctx.Done():
			case <-p.kick:
			}
			continue
		}
		if err := ask(ctx, retry, report); ctx.Err() == nil {
			p.tell(report, PodsFacts{State: checkpoint.KubeletUnknown, Detail: err.Error()})
		}
		if pause(ctx, retry.NextBackOff(), p.kick) {
			retry.Reset() // a socket that was created now is listened on in a moment
		}
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// connect watches over one connection until it breaks.
func (p *Pods) connect(ctx context.Context, retry interface{ Reset() }, report func(PodsFacts)) error {
	conn, err := dial("unix://" + filepath.Join(p.directory, "pods-api.sock"))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := podsv1.NewPodsClient(conn)
	for {
		err := p.watch(ctx, client, retry, report)
		if status.Code(err) != codes.FailedPrecondition {
			return err
		}
		retry.Reset()
		p.tell(report, PodsFacts{State: checkpoint.KubeletUnsynced, Detail: status.Convert(err).Message()})
		wait := askLater
		if p.apiServing.Load() {
			wait = askSoon
		}
		pause(ctx, wait, p.kick)
	}
}

// errSilent ends a stream that tells nothing, or does not come to the end of its beginning, as that of a kubelet that hangs.
var errSilent = errors.New("the kubelet does not tell what it manages")

// watch follows one stream until it ends, always with an error.
func (p *Pods) watch(ctx context.Context, client podsv1.PodsClient, retry interface{ Reset() }, report func(PodsFacts)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(p.patience, func() { cancel(errSilent) })
	defer silent.Stop()
	stream, err := client.WatchPods(ctx, &podsv1.WatchPodsRequest{})
	if err != nil {
		return err
	}
	known, synced := newKnown(), false
	for {
		event, err := stream.Recv()
		if errors.Is(context.Cause(ctx), errSilent) {
			return errSilent
		}
		if err != nil {
			return err
		}
		if event.Type == podsv1.EventType_INITIAL_SYNC_COMPLETE {
			silent.Stop()
			synced = true
			retry.Reset()
		} else if err := known.fold(event); err != nil {
			return err
		}
		if synced {
			p.tell(report, known.facts())
		}
	}
}

// tell reports facts that differ from the last, and logs a change of state.
func (p *Pods) tell(report func(PodsFacts), facts PodsFacts) {
	if p.told && facts.State == p.last.State && maps.Equal(facts.Managed, p.last.Managed) && maps.Equal(facts.Evicted, p.last.Evicted) {
		return
	}
	if !p.told || facts.State != p.last.State {
		p.logState(facts)
	}
	p.told, p.last = true, facts
	report(facts)
}

func (p *Pods) logState(facts PodsFacts) {
	event, meaning := p.log.Info(), map[checkpoint.Kubelet]string{
		checkpoint.KubeletUnknown:  "kubelet does not answer: for some seconds nothing is activated or withdrawn because of it",
		checkpoint.KubeletUnsynced: "kubelet has not seen the API server since its start: checkpoints of pods that are down are activated",
		checkpoint.KubeletSynced:   "kubelet manages the API server's pods: their checkpoints are held back",
		checkpoint.KubeletAbsent:   "kubelet has no socket that tells: what it manages is judged by what the container runtime runs",
	}[facts.State]
	if facts.State == checkpoint.KubeletUnknown {
		event = p.log.Warn()
	}
	event.Stringer("from", p.last.State).Stringer("to", facts.State).Str("detail", facts.Detail).Msg(meaning)
}
