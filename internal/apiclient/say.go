package apiclient

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// settled is how long a server must have been away in another way than before for that to be worth a line. One that
// starts is away in several ways in a few seconds, and one behind a balancer may waver between them for hours.
const settled = 10 * time.Second

var meanings = map[checkpoint.API]string{
	checkpoint.APIServing:  "API server serves: its pods are checkpointed, and what it no longer wants is removed",
	checkpoint.APIRefusing: "API server refuses us: nothing will be removed",
	checkpoint.APIFailing:  "API server fails: nothing will be removed",
	checkpoint.APILost:     "API server lost: nothing will be removed",
}

// say logs that the state has changed: at once if the server begins or ceases to serve. The caller holds c.mu.
func (c *Client) say() {
	if c.settling != nil {
		c.settling.Stop()
	}
	if away := func(s checkpoint.API) bool { return s != checkpoint.APIServing && s != checkpoint.APIUnknown }; !away(c.said) || !away(c.facts.State) {
		c.logState()
		return
	}
	c.settling = time.AfterFunc(settled, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.logState()
	})
}

func (c *Client) logState() {
	from, to := c.said, c.facts.State
	if from == to {
		return
	}
	meaning, level := meanings[to], zerolog.WarnLevel
	if to == checkpoint.APIServing {
		level = zerolog.InfoLevel
	}
	c.said = to
	c.log.WithLevel(level).Stringer("from", from).Stringer("to", to).Str("detail", c.facts.Detail).Msg(meaning)
}

// sayUsable logs that a server which serves gives no list of our pods that could be used, and that it does again.
func (c *Client) sayUsable(usable bool, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case usable && c.unusable:
		c.log.Info().Msg("API server's list of our pods can be used again")
	case !usable && !c.unusable && c.facts.State == checkpoint.APIServing && !errors.Is(why, context.Canceled):
		c.log.Warn().Err(why).Msg("API server serves, but its list of our pods can't be used: nothing will be stored or removed")
	default:
		return
	}
	c.unusable = !usable
}
