package watch

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// retries holds back, by name, what failed, and what has to be done again as soon as it is done: each time for longer,
// and never for ever.
type retries struct {
	held    map[string]*retry
	longest time.Duration // between two tries, give or take a quarter
}

type retry struct {
	backoff backoff.BackOff
	at      time.Time // not before
	failed  time.Time // when it failed last
	failing bool
	undone  bool // it had to be done again as soon as it was done, and that was told
}

func newRetries(longest time.Duration) retries {
	return retries{make(map[string]*retry), longest}
}

const (
	lasting  = time.Second // what has to be done again sooner did not last
	forgiven = time.Minute // after which a name that nothing was heard of starts anew
)

func (r retries) of(name string) *retry {
	held := r.held[name]
	if held == nil || time.Since(held.at) > forgiven {
		held = &retry{backoff: backoff.NewExponentialBackOff(
			backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMaxInterval(r.longest),
			backoff.WithRandomizationFactor(0.25), backoff.WithMaxElapsedTime(0),
		)}
		r.held[name] = held
	}
	return held
}

// blocked says whether it is too early to try name again.
func (r retries) blocked(name string) bool {
	held := r.held[name]
	return held != nil && time.Now().Before(held.at)
}

// failing says whether the last try of name failed.
func (r retries) failing(name string) bool { return r.held[name] != nil && r.held[name].failing }

// forget has name tried again as if it had never failed.
func (r retries) forget(name string) { delete(r.held, name) }

// failed holds name back. It says for how long, and whether that is news.
func (r retries) failed(name string) (wait time.Duration, news bool) {
	held := r.of(name)
	news, held.failing, held.failed = !held.failing, true, time.Now()
	return held.hold(), news
}

// seldom is between two questions whose answer somebody must change first.
const seldom = 5 * time.Minute

// refused is as failed, of an answer that will be the same before somebody acts.
func (r retries) refused(name string) (wait time.Duration, news bool) {
	_, news = r.failed(name)
	r.held[name].at = time.Now().Add(seldom)
	return seldom, news
}

// again lets name be tried now, if it failed: what it is held back by may be gone.
func (r retries) again(name string) {
	if held := r.held[name]; held != nil && held.failing {
		held.at = time.Now()
	}
}

// release lets all that failed be tried again soon: something has changed that may have cured it. But not at once, if it
// failed just now: the change may be our own doing.
func (r retries) release() {
	for _, held := range r.held {
		if soon := held.failed.Add(lasting); held.failing && soon.Before(held.at) {
			held.at = soon
		}
	}
}

// succeeded lets name be tried again at once, unless it was just now: then somebody undoes it, and it is held back. It
// says whether the last time lasted, and whether that it did not is news.
func (r retries) succeeded(name string) (lasted, news bool) {
	held := r.of(name)
	if !held.failing && !held.at.IsZero() && time.Since(held.at) < lasting {
		held.hold()
		news, held.undone = !held.undone, true
		return false, news
	}
	held.backoff.Reset()
	held.at, held.failing, held.undone = time.Now(), false, false
	return true, false
}

func (held *retry) hold() time.Duration {
	wait := held.backoff.NextBackOff()
	held.at = time.Now().Add(wait)
	return wait
}

// next is when the first of those held back may be tried again; zero if none is.
func (r retries) next() (next time.Time) {
	for name, held := range r.held {
		switch {
		case time.Now().Before(held.at):
			next = earliest(next, held.at)
		case time.Since(held.at) > forgiven:
			delete(r.held, name)
		}
	}
	return next
}
