package watch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// Cluster answers what the loop must ask the API server for. The calls may take their time: the loop does not wait.
type Cluster interface {
	References(ctx context.Context, pod *corev1.Pod) (manifest.References, error)
	Surroundings(ctx context.Context) (apiclient.Surroundings, error)
	LivePods(ctx context.Context) ([]*corev1.Pod, error) // a consistent LIST of this node's pods
	NodeUID(ctx context.Context) (string, error)         // of this node's own Node object
}

// Kubelet is told when it is worth asking the kubelet again.
type Kubelet interface {
	Kick()
	APIServing(bool)
}

// Volumes is told which volumes to watch, as absolute directories.
type Volumes interface {
	Watch(map[checkpoint.UID][]string)
}

// Disk is told which directories to watch for damage, beside those of the manifests.
type Disk interface {
	Watch(dirs []string)
}

// Runtime is the container runtime, as far as it is written to.
type Runtime interface {
	StopSandbox(ctx context.Context, id string) error
	Kick(ctx context.Context, id string) error // remove its exited containers, then stop it
}

// Config is what Loop is made of.
type Config struct {
	Policy        checkpoint.Policy // Self and SelfName are found by the loop
	Namespaces    []string          // in which pods may ask for a checkpoint
	SelfNamespace string            // of the checkpointer's own pod; empty if it has none
	SelfName      string
	KubeletDir    string
	Options       manifest.Options // what depends on the cluster is found by the loop

	Store   *manifest.Store
	Cluster Cluster
	Kubelet Kubelet
	Volumes Volumes
	Disk    Disk
	Runtime Runtime
	Pings   Pings  // may be nil
	Events  Events // may be nil

	StatusFile string       // empty: none is kept
	Agent      status.Agent // this copy, as the status file names it

	Log zerolog.Logger
}

// Loop is the one goroutine that decides and writes.
type Loop struct {
	Config

	// The mailboxes of the sources.
	API              Mailbox[apiclient.Facts]
	KubeletPods      Mailbox[kubelet.PodsFacts]
	RuntimeSandboxes Mailbox[kubelet.RuntimeFacts]
	VolumeChanges    Mailbox[map[checkpoint.UID]bool]
	Directories      Mailbox[map[string]bool] // in which something changed

	world      checkpoint.World
	states     map[checkpoint.Lineage]checkpoint.State
	pods       map[checkpoint.UID]*corev1.Pod // parents as the API server last told
	renders    map[checkpoint.UID]*render
	watched    map[checkpoint.UID][]string
	learned    time.Time // the APISince of when the surroundings were asked for last
	retries    retries   // of what is done on this node's disk
	askRetries retries   // of questions
	assets     []string  // their directories, as the watch was last told
	said       map[manifest.Problem]bool

	reporter reporter

	nodeUID   string          // of the Node object that the checkpoints are from, once it is recorded
	done      string          // why there is nothing left to do here; empty: there is
	asking    map[string]bool // what is being asked for in the background
	answers   chan func()     // what to do with the answers, in the loop
	questions sync.WaitGroup
}

// NewLoop makes a loop that knows nothing yet.
func NewLoop(config Config) *Loop {
	now := time.Now()
	return &Loop{
		Config:           config,
		API:              NewMailbox[apiclient.Facts](),
		KubeletPods:      NewMailbox[kubelet.PodsFacts](),
		RuntimeSandboxes: NewMailbox[kubelet.RuntimeFacts](),
		VolumeChanges:    NewMergingMailbox(union[checkpoint.UID]),
		Directories:      NewMergingMailbox(union[string]),
		world:            checkpoint.World{Start: now, APISince: now, KubeletSince: now, Confirmed: make(map[checkpoint.Lineage]time.Time)},
		pods:             make(map[checkpoint.UID]*corev1.Pod),
		renders:          make(map[checkpoint.UID]*render),
		retries:          newRetries(4 * time.Second), // nothing tells that there is room on a disk again
		askRetries:       newRetries(15 * time.Second),
		reporter:         reporter{file: config.StatusFile, agent: config.Agent, runtimeSince: now},
		asking:           make(map[string]bool),
		answers:          make(chan func()),
	}
}

// Run decides and applies until ctx ends, and every question with it.
func (l *Loop) Run(ctx context.Context) {
	defer l.questions.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case facts := <-l.API.slot:
			l.foldAPI(facts)
		case facts := <-l.KubeletPods.slot:
			l.foldKubelet(facts)
		case facts := <-l.RuntimeSandboxes.slot:
			l.foldRuntime(facts)
		case uids := <-l.VolumeChanges.slot:
			l.foldVolumes(uids)
		case dirs := <-l.Directories.slot:
			l.foldDirectories(dirs)
		case answer := <-l.answers:
			answer()
		case <-l.Pings:
			continue
		case <-timer.C:
		}
		timer.Stop()
		wake := l.reconcile(ctx)
		if l.done != "" {
			l.Log.Info().Str("why", l.done).Msg("ending")
			return
		}
		l.report()
		if !wake.IsZero() {
			timer.Reset(time.Until(wake))
		}
	}
}

// reconcile plans and applies until a plan writes nothing more. It returns when to plan again, though no fact changes;
// zero: never.
func (l *Loop) reconcile(ctx context.Context) time.Time {
	l.refoldDisk()
	l.identify(ctx)
	for {
		l.Policy.Self, l.Policy.SelfName = l.self(), l.SelfName
		l.renderParents(ctx)
		l.world.Now = time.Now()
		states, actions, wake := checkpoint.Plan(l.states, l.world, l.Policy)
		l.Log.Debug().Int("actions", len(actions)).Time("wake", wake).Msg("planned")
		l.logTransitions(states)
		l.states = states
		if !l.apply(ctx, actions) || l.done != "" {
			return earliest(wake, earliest(l.retries.next(), l.askRetries.next()))
		}
		l.foldDisk()
	}
}

// ask runs a question in the background, one of a name at a time, and its answer in the loop. One that failed is held
// back for a while, as is one that is asked again as soon as it is answered.
func (l *Loop) ask(ctx context.Context, name string, question func() (answer func() error, err error)) {
	if l.asking[name] || l.askRetries.blocked(name) {
		return
	}
	l.asking[name] = true
	l.questions.Go(func() {
		answer, err := question()
		conclude := func() {
			delete(l.asking, name)
			if err == nil {
				err = answer()
			}
			if err == nil {
				l.askRetries.succeeded(name)
				return
			}
			hold := l.askRetries.failed
			if errors.Is(err, errOtherNode) {
				hold = l.askRetries.refused
			}
			wait, news := hold(name)
			l.Log.WithLevel(levelOf(zerolog.WarnLevel, news)).Err(err).Str("question", name).Dur("retry_in", wait).
				Msg("no usable answer yet")
		}
		select {
		case <-ctx.Done():
		case l.answers <- conclude:
		}
	})
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func union[K comparable](older, newer map[K]bool) map[K]bool {
	for k := range older {
		newer[k] = true
	}
	return newer
}
