package apiclient

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"

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
	// Pods are those of this node that ask for a checkpoint, as last told; nil before the first list.
	Pods []*corev1.Pod
}

// Client watches the pods of one node.
type Client struct {
	config Config
	log    zerolog.Logger

	mu         sync.Mutex // guards what follows
	facts      Facts
	said       checkpoint.API          // the state that was logged last
	unusable   bool                    // it was logged that the list of our pods is
	settling   *time.Timer             // until the present state is worth a line
	unreported chan struct{}           // holds a token while facts are unreported
	endWatch   context.CancelCauseFunc // of the watch in hand
	access     *access
	events     events
}

// New reads the kubeconfig and asks nothing yet. An error says what was looked for, where, and which flag names another.
func New(config Config, log zerolog.Logger) (*Client, error) {
	c := &Client{config: config, log: log, unreported: make(chan struct{}, 1), endWatch: func(error) {}}
	c.events = events{told: make(map[Event]time.Time), some: make(chan struct{}, 1)}
	access, err := c.open()
	c.access = access
	return c, err
}

// Run reports facts until ctx ends. report must not block.
func (c *Client) Run(ctx context.Context, report func(Facts)) {
	var reporter sync.WaitGroup
	reporter.Go(func() { c.reportChanges(ctx, report) })
	reporter.Go(func() { c.sendEvents(ctx) })
	defer reporter.Wait()

	patience := newPatience()
	for {
		if c.watchPods(ctx) {
			patience.reset()
		}
		if !c.awaitAnswer(ctx, patience) {
			return
		}
	}
}

func (c *Client) reportChanges(ctx context.Context, report func(Facts)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.unreported:
			c.mu.Lock()
			facts := c.facts
			c.mu.Unlock()
			report(facts)
		}
	}
}

// awaitAnswer asks /readyz at once, so that an end of the watch which is an outage is known as one however often the server
// came and went before, and then less and less often until the server answers. Whether it serves us, the request for our
// pods then tells. It returns false if ctx ended.
func (c *Client) awaitAnswer(ctx context.Context, patience *patience) bool {
	answered := c.isReady(ctx)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(patience.next()):
		}
		if answered || c.isReady(ctx) {
			return true
		}
	}
}

func (c *Client) isReady(ctx context.Context) bool {
	c.refresh()
	code, answer := 0, c.watching().Get().AbsPath(readyPath).MaxRetries(0).Do(ctx)
	if answer.StatusCode(&code); code != 0 && !isFailure(code) {
		return true
	}
	c.log.Debug().Err(answer.Error()).Msg("API server is not ready")
	return false
}

// observed takes note of how the server answered. Another answer than success ends the watch, so that everything is
// listed anew once the server serves.
func (c *Client) observed(state checkpoint.API, detail string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state != checkpoint.APIServing {
		c.endWatch(errNotServing)
	}
	if state == c.facts.State {
		return
	}
	c.facts.State, c.facts.Detail = state, detail
	c.facts.Current = c.facts.Current && state == checkpoint.APIServing
	c.say()
	c.changed()
	c.wakeEvents()
}

// learned takes note of what the watch of ctx tells.
func (c *Client) learned(ctx context.Context, pods []*corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil {
		c.facts.Pods, c.facts.Current = pods, true
		c.changed()
	}
}

// unwatched takes note that what was told last may be old.
func (c *Client) unwatched() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts.Current {
		c.facts.Current = false
		c.changed()
	}
}

func (c *Client) changed() {
	select {
	case c.unreported <- struct{}{}:
	default:
	}
}
