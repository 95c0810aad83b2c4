package apiclient

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// patience is the time between two questions to a server that does not serve: short while the outage is young, because
// then a return is likely, and never so long that a return is missed for more than a few seconds.
type patience struct {
	backoff *backoff.ExponentialBackOff
	since   time.Time
	fresh   bool // the server served until now: ask at once
}

const (
	young       = time.Minute
	longestThen = time.Second
	longest     = 5 * time.Second
)

func newPatience() *patience {
	p := &patience{backoff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMultiplier(1.3),
		backoff.WithRandomizationFactor(0.2), backoff.WithMaxInterval(longestThen), backoff.WithMaxElapsedTime(0),
	)}
	p.reset()
	return p
}

// reset starts anew: the server served.
func (p *patience) reset() {
	p.backoff.MaxInterval = longestThen
	p.backoff.Reset()
	p.since, p.fresh = time.Now(), true
}

func (p *patience) next() time.Duration {
	if p.fresh {
		p.fresh = false
		return 0
	}
	if time.Since(p.since) > young {
		p.backoff.MaxInterval = longest
	}
	return p.backoff.NextBackOff()
}
