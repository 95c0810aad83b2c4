package apiclient

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Config says whom to ask, about what.
type Config struct {
	Kubeconfig string // absolute path
	NodeName   string
}

// Facts is what is known of the API server.
type Facts struct {
	State   checkpoint.API
	Current bool   // Pods is the server's answer of now: listed since it last began to serve, and watched
	Detail  string // of the answer that State comes from, for people
	Pods    []*corev1.Pod
}

// Client watches the pods of one node.
type Client struct {
	config Config
	log    zerolog.Logger

	mu         sync.Mutex // guards what follows
	facts      Facts
	changed    chan struct{} // holds a token while facts are unreported
	stopWatch  context.CancelCauseFunc
	rest       *rest.RESTClient
	kubeconfig []byte // that rest was made of
}

// New reads the kubeconfig and asks nothing yet. An error says what was looked for, where, and which flag names another.
func New(config Config, log zerolog.Logger) (*Client, error) {
	c := &Client{config: config, log: log, changed: make(chan struct{}, 1)}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Run reports facts until ctx ends. report must not block.
func (c *Client) Run(ctx context.Context, report func(Facts)) {
	var reporter sync.WaitGroup
	reporter.Go(func() { c.reportChanges(ctx, report) })
	defer reporter.Wait()

	patience := newPatience()
	for ctx.Err() == nil {
		if c.watchPods(ctx) {
			patience.reset()
		}
		c.awaitAnswer(ctx, patience)
	}
}

func (c *Client) reportChanges(ctx context.Context, report func(Facts)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			c.mu.Lock()
			facts := c.facts
			c.mu.Unlock()
			report(facts)
		}
	}
}

// update changes the facts and has them reported.
func (c *Client) update(change func(*Facts)) {
	c.mu.Lock()
	before := c.facts.State
	change(&c.facts)
	facts := c.facts
	c.mu.Unlock()
	select {
	case c.changed <- struct{}{}:
	default:
	}
	if facts.State != before {
		c.logState(before, facts)
	}
}

// observed takes note of how a request for our own pods ended. An answer other than success ends the watch, so that
// everything is listed anew once the server serves again.
func (c *Client) observed(state checkpoint.API, detail string) {
	c.update(func(f *Facts) {
		f.State, f.Detail = state, detail
		if state != checkpoint.APIServing {
			f.Current = false
		}
	})
	c.mu.Lock()
	stop := c.stopWatch
	c.mu.Unlock()
	if stop != nil && state != checkpoint.APIServing {
		stop(errNotServing)
	}
}

func (c *Client) logState(before checkpoint.API, facts Facts) {
	event, meaning := c.log.Warn(), map[checkpoint.API]string{
		checkpoint.APIServing:  "API server serves",
		checkpoint.APIRefusing: "API server refuses us: nothing will be removed",
		checkpoint.APIFailing:  "API server fails: nothing will be removed",
		checkpoint.APILost:     "API server lost: nothing will be removed",
	}[facts.State]
	if facts.State == checkpoint.APIServing {
		event = c.log.Info()
	}
	event.Stringer("from", before).Stringer("to", facts.State).Str("detail", facts.Detail).Msg(meaning)
}

// awaitAnswer asks /readyz, less and less often, until the server answers it.
func (c *Client) awaitAnswer(ctx context.Context, patience *patience) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(patience.next()):
		}
		c.reload()
		asking, cancel := context.WithTimeout(ctx, answerTimeout)
		err := c.client().Get().AbsPath("/readyz").MaxRetries(0).Do(asking).Error()
		cancel()
		if state := classify(err); state != checkpoint.APILost && state != checkpoint.APIFailing {
			return // it answers: whether it serves us, the request for our pods tells
		}
		c.log.Debug().Err(err).Msg("API server is not ready")
	}
}
