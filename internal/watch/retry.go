package watch

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// retries holds back, by name, what failed: each time for longer, and never for ever.
type retries map[string]*retry

type retry struct {
	backoff backoff.BackOff
	at      time.Time
}

// blocked says whether it is too early to try name again.
func (r retries) blocked(name string) bool {
	held := r[name]
	return held != nil && time.Now().Before(held.at)
}

// failed holds name back, and says for how long.
func (r retries) failed(name string) time.Duration {
	held := r[name]
	if held == nil {
		held = &retry{backoff: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMaxInterval(15*time.Second), backoff.WithMaxElapsedTime(0))}
		r[name] = held
	}
	wait := held.backoff.NextBackOff()
	held.at = time.Now().Add(wait)
	return wait
}

func (r retries) succeeded(name string) { delete(r, name) }

// next is when the first of those held back may be tried again; zero if none is.
func (r retries) next() (next time.Time) {
	for _, held := range r {
		if time.Now().Before(held.at) {
			next = earliest(next, held.at)
		}
	}
	return next
}
