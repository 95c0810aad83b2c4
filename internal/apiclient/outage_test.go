package apiclient

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// bubble is a test in which time is free.
func bubble(t *testing.T, api *fakeAPI, test func(*testing.T, *running, *memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, m := inMemory(t, api)
		r.awaitServing(time.Second, "a")
		test(t, r, m)
	})
}

func TestAnswers(t *testing.T) {
	for code, want := range map[int]checkpoint.API{
		http.StatusUnauthorized:        checkpoint.APIRefusing,
		http.StatusForbidden:           checkpoint.APIRefusing,
		http.StatusTooManyRequests:     checkpoint.APIFailing,
		http.StatusInternalServerError: checkpoint.APIFailing,
		http.StatusServiceUnavailable:  checkpoint.APIFailing,
		http.StatusNotFound:            checkpoint.APIFailing,
	} {
		for _, readyToo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, of readyz too %v", code, readyToo), func(t *testing.T) {
				api := newFakeAPI(pod("a", asksForCheckpoint))
				bubble(t, api, func(t *testing.T, r *running, _ *memory) {
					api.answer(func(w http.ResponseWriter, r *http.Request) bool {
						if r.URL.Path == readyPath && !readyToo {
							return false
						}
						w.Header().Set("Retry-After", "60")
						status(w, code)
						return true
					})
					api.endWatches()
					r.awaitState(time.Second, want)
					time.Sleep(20 * time.Second)
					api.answer(nil)
					r.awaitServing(2*time.Second, "a")
					if got, want := r.log("to"), "serving "+want.String()+" serving"; got != want {
						t.Errorf("logged states: %s, want %s", got, want)
					}
				})
			})
		}
	}
}

// TestSteadyState: an hour in which nothing happens is a few watches that go on where the one before ended.
func TestSteadyState(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		api.questions()
		reports := len(r.all)
		time.Sleep(time.Hour)
		asked := api.questions()
		if n := len(asked); n < 6 || n > 12 || slices.ContainsFunc(asked, func(q string) bool { return q != "WATCH 101" }) {
			t.Errorf("it asked %v, want from 6 to 12 times WATCH 101", asked)
		}
		if got := len(r.all) - reports; got != 0 {
			t.Errorf("%d reports, want none", got)
		}
		if got, want := r.log("to"), "serving"; got != want {
			t.Errorf("logged states: %s, want %s", got, want)
		}
	})
}

func TestReturnIsNoticed(t *testing.T) {
	for _, c := range []struct{ outage, within time.Duration }{
		{50 * time.Millisecond, 2 * time.Second},
		{1700 * time.Millisecond, 2 * time.Second},
		{58 * time.Second, 2 * time.Second},
		{10 * time.Minute, 7 * time.Second},
		{12 * time.Hour, 7 * time.Second},
	} {
		t.Run(c.outage.String(), func(t *testing.T) {
			api := newFakeAPI(pod("a", asksForCheckpoint))
			bubble(t, api, func(t *testing.T, r *running, m *memory) {
				m.refuse(true)
				r.awaitState(time.Millisecond, checkpoint.APILost)
				api.questions()
				time.Sleep(c.outage)
				if got, want := r.log("to"), "serving lost"; got != want {
					t.Errorf("logged states during the outage: %s, want %s", got, want)
				}
				reports := len(r.all)
				m.refuse(false)
				r.awaitServing(c.within, "a")
				if got := api.questions(); !slices.Equal(got, []string{"WATCHLIST"}) {
					t.Errorf("it asked %v, want a fresh and consistent list", got)
				}
				if got := len(r.all) - reports; got > 2 {
					t.Errorf("%d reports of the return, want at most 2: serving, and the pods", got)
				}
			})
		})
	}
}

// TestDownFromTheStart: the reflector must not sleep in a back-off of its own.
func TestDownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := inMemory(t, newFakeAPI(pod("a", asksForCheckpoint)))
		m.refuse(true)
		r.awaitState(time.Millisecond, checkpoint.APILost)
		time.Sleep(100 * time.Millisecond)
		m.refuse(false)
		r.awaitServing(500*time.Millisecond, "a")
	})
}

// TestEveryOutageIsSaid, and so is its end.
func TestEveryOutageIsSaid(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, m *memory) {
		for range 3 {
			m.refuse(true)
			r.awaitState(7*time.Second, checkpoint.APILost)
			m.refuse(false)
			r.awaitServing(7*time.Second, "a")
		}
		if got, want := r.log("to"), "serving lost serving lost serving lost serving"; got != want {
			t.Errorf("logged states: %s, want %s", got, want)
		}
	})
}

// TestLateEvent: what a watch still has to tell after the server was lost is not the server's answer of now.
func TestLateEvent(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, m *memory) {
		m.refuse(true)
		r.awaitState(time.Second, checkpoint.APILost)
		ended, end := context.WithCancelCause(t.Context())
		r.Client.mu.Lock()
		r.endWatch = end
		r.Client.mu.Unlock()
		r.observed(checkpoint.APIFailing, "")
		r.learned(ended, nil)
		synctest.Wait()
		if f := r.latest(); f.Current || f.Pods == nil {
			t.Errorf("after a late event the pods are %v, current %v; want those before, not current", f.Pods, f.Current)
		}
	})
}

// TestBrokenWatchList: a list that never completes as a stream is asked for as a list.
func TestBrokenWatchList(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	api.noBookmark = true
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		synctest.Wait()
		if got, want := api.questions(), []string{"WATCHLIST", "LIST", "WATCH 101"}; !slices.Equal(got, want) {
			t.Errorf("it asked %v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		if got := api.questions(); len(got) > 0 {
			t.Errorf("later it asked %v, want nothing", got)
		}
	})
}

// TestWatchEndsEarly: a server that ends watches before their time may be back with another history.
func TestWatchEndsEarly(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		api.questions()
		time.Sleep(time.Minute)
		api.restore()
		api.endWatches()
		r.awaitServing(time.Second)
		if got := api.questions(); !slices.Equal(got, []string{"WATCHLIST"}) {
			t.Errorf("it asked %v, want a fresh and consistent list", got)
		}
		if got, want := r.states(), []checkpoint.API{checkpoint.APIServing}; !slices.Equal(got, want) {
			t.Errorf("states: %v, want %v", got, want)
		}
	})
}

// TestWatchIsNotEnded: something between us and the server holds a dead watch open.
func TestWatchIsNotEnded(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	api.stuck = true
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		api.questions()
		api.restore()
		r.awaitServing(11 * time.Minute)
		if got := api.questions(); !slices.Equal(got, []string{"WATCHLIST"}) {
			t.Errorf("it asked %v, want a fresh and consistent list", got)
		}
	})
}

// TestNoHotLoop: a server that answers, and ends every watch at once, is asked less and less often.
func TestNoHotLoop(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		api.questions()
		start, lists := time.Now(), 0
		for time.Since(start) < time.Hour {
			api.endWatches()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		for _, question := range api.questions() {
			if strings.HasSuffix(question, "LIST") {
				lists++
			}
		}
		if lists < 600 || lists > 1200 {
			t.Errorf("%d lists in an hour, want one in about 4 s", lists)
		}
	})
}

// TestOutageOfAServerThatHasComeAndGoneForLongIsNoticed: that it ended many watches early makes the agent list less often,
// and not slower to know when it is gone.
func TestOutageOfAServerThatHasComeAndGoneForLongIsNoticed(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, m *memory) {
		for range 300 {
			api.endWatches()
			time.Sleep(time.Second)
		}
		r.await(10*time.Second, "current", func(f Facts) bool { return f.Current })
		m.refuse(true)
		api.endWatches()
		r.awaitState(time.Second, checkpoint.APILost)
	})
}

// TestWaveringServer: one that is away in ever other ways has nothing new to tell, until it settles for one.
func TestWaveringServer(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, m *memory) {
		for range 50 {
			m.refuse(true)
			r.awaitState(10*time.Second, checkpoint.APILost)
			api.answer(func(w http.ResponseWriter, _ *http.Request) bool { status(w, http.StatusBadGateway); return true })
			m.refuse(false)
			r.awaitState(10*time.Second, checkpoint.APIFailing)
		}
		time.Sleep(settled - time.Nanosecond)
		if got, want := r.log("to"), "serving lost"; got != want {
			t.Errorf("logged states: %s, want %s", got, want)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		api.answer(nil)
		r.awaitServing(7*time.Second, "a")
		time.Sleep(time.Minute)
		if got, want := r.log("from"), "unknown serving lost failing"; got != want {
			t.Errorf("logged states that ended: %s, want %s", got, want)
		}
	})
}
