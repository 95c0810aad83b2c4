package watch

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// retries holds back, by name, what failed, and what has to be done again as soon as it is done: each time for longer,
// and never for ever.
type retries map[string]*retry

type retry struct {
	backoff backoff.BackOff
	at      time.Time // not before
	failing bool
}

const (
	lasting  = time.Second // what has to be done again sooner did not last
	forgiven = time.Minute // after which a name that nothing was heard of starts anew
)

func (r retries) of(name string) *retry {
	held := r[name]
	if held == nil || time.Since(held.at) > forgiven {
		held = &retry{backoff: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMaxInterval(15*time.Second), backoff.WithMaxElapsedTime(0),
		)}
		r[name] = held
	}
	return held
}

// blocked says whether it is too early to try name again.
func (r retries) blocked(name string) bool {
	held := r[name]
	return held != nil && time.Now().Before(held.at)
}

// failing says whether the last try of name failed.
func (r retries) failing(name string) bool { return r[name] != nil && r[name].failing }

// failed holds name back. It says for how long, and whether that is news.
func (r retries) failed(name string) (wait time.Duration, news bool) {
	held := r.of(name)
	news, held.failing = !held.failing, true
	return held.hold(), news
}

// seldom is between two questions whose answer somebody must change first.
const seldom = 5 * time.Minute

// refused is as failed, of an answer that will be the same before somebody acts.
func (r retries) refused(name string) (wait time.Duration, news bool) {
	_, news = r.failed(name)
	r[name].at = time.Now().Add(seldom)
	return seldom, news
}

// again lets name be tried now, if it failed: what it is held back by may be gone.
func (r retries) again(name string) {
	if held := r[name]; held != nil && held.failing {
		held.at = time.Now()
	}
}

// succeeded lets name be tried again at once, unless it was just now: then somebody undoes it, and it is held back.
func (r retries) succeeded(name string) (lasted bool) {
	held := r.of(name)
	if !held.failing && !held.at.IsZero() && time.Since(held.at) < lasting {
		held.hold()
		return false
	}
	held.backoff.Reset()
	held.at, held.failing = time.Now(), false
	return true
}

func (held *retry) hold() time.Duration {
	wait := held.backoff.NextBackOff()
	held.at = time.Now().Add(wait)
	return wait
}

// next is when the first of those held back may be tried again; zero if none is.
func (r retries) next() (next time.Time) {
	for name, held := range r {
		switch {
		case time.Now().Before(held.at):
			next = earliest(next, held.at)
		case time.Since(held.at) > forgiven:
			delete(r, name)
		}
	}
	return next
}
