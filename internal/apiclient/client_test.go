package apiclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestMain(m *testing.M) {
	LogThrough(zerolog.Nop())
	os.Exit(m.Run())
}

// running is a client that runs, and what it says.
type running struct {
	t     *testing.T
	mu    sync.Mutex
	all   []Facts
	more  chan struct{}
	lines bytes.Buffer
	*Client
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(p)
}

func (r *running) report(facts Facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, facts)
	close(r.more)
	r.more = make(chan struct{})
}

func run(t *testing.T, kubeconfig string) *running {
	t.Helper()
	r := &running{t: t, more: make(chan struct{})}
	client, err := New(Config{Kubeconfig: kubeconfig, NodeName: node}, zerolog.New(r))
	if err != nil {
		t.Fatal(err)
	}
	r.Client = client
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); client.Run(ctx, r.report) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// await waits until the latest facts are as wanted, and says after how long.
func (r *running) await(within time.Duration, what string, wanted func(Facts) bool) time.Duration {
	r.t.Helper()
	start, timeout := time.Now(), time.After(within)
	for {
		r.mu.Lock()
		more := r.more
		r.mu.Unlock()
		latest := r.latest()
		if wanted(latest) {
			took := time.Since(start)
			r.t.Logf("%s after %v", what, took.Round(time.Millisecond))
			return took
		}
		select {
		case <-more:
		case <-timeout:
			r.t.Fatalf("not %s within %v; facts: %v, %q; log:\n%s", what, within, latest.State, latest.Detail, r.log(""))
		}
	}
}

func (r *running) latest() Facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return Facts{}
	}
	return r.all[len(r.all)-1]
}

func (r *running) awaitState(within time.Duration, state checkpoint.API) {
	r.t.Helper()
	r.await(within, state.String(), func(f Facts) bool { return f.State == state })
}

func (r *running) awaitServing(within time.Duration, pods ...string) {
	r.t.Helper()
	r.await(within, "serving "+strings.Join(pods, " "), func(f Facts) bool {
		return f.State == checkpoint.APIServing && f.Current && f.Pods != nil && slices.Equal(names(f), pods)
	})
}

func names(f Facts) []string {
	var names []string
	for _, pod := range f.Pods {
		names = append(names, pod.Name)
	}
	return names
}

// log is what was logged above debug; with a field, only its values.
func (r *running) log(field string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for line := range strings.Lines(r.lines.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			r.t.Fatal(err)
		}
		switch {
		case field == "":
			all = append(all, line)
		case fields["level"] != "debug":
			all = append(all, fmt.Sprint(fields[field]))
		}
	}
	return strings.Join(all, " ")
}

// states are all that were reported, each once in a row.
func (r *running) states() []checkpoint.API {
	r.mu.Lock()
	defer r.mu.Unlock()
	var states []checkpoint.API
	for _, f := range r.all {
		states = append(states, f.State)
	}
	return slices.Compact(states)
}

// site is a server with its authority and a kubeconfig for it.
type site struct {
	api       *fakeAPI
	authority *authority
	server    *server
	cable     *cable
	path      string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{api: newFakeAPI(pod("a", asksForCheckpoint)), authority: newAuthority(t), path: filepath.Join(t.TempDir(), "kubelet.conf")}
	s.server = newServer(t, s.api, s.authority)
	s.cable = newCable(t, s.server.addr)
	kubeconfig(t, s.path, s.cable.addr(), s.authority, s.authority.issue())
	return s
}

func (s *site) direct(t *testing.T) *site {
	t.Helper()
	kubeconfig(t, s.path, s.server.addr, s.authority, s.authority.issue())
	return s
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("WatchList %v", watchList), func(t *testing.T) {
			s := newSite(t)
			s.api.noWatchList = !watchList
			other := pod("elsewhere", asksForCheckpoint)
			other.Spec.NodeName = "node-2"
			s.api.put(other)
			r := run(t, s.path)
			r.awaitServing(2*time.Second, "a")
			s.api.put(pod("b", asksForCheckpoint))
			r.awaitServing(time.Second, "a", "b")
			s.api.remove("a")
			r.awaitServing(time.Second, "b")
			want := []string{"WATCHLIST"}
			if !watchList {
				want = []string{"LIST", "WATCH 102"}
			}
			if got := s.api.questions(); !slices.Equal(got, want) {
				t.Errorf("it asked %v, want %v: a consistent read, then the changes", got, want)
			}
		})
	}
}

func TestOnlyWhatIsNeededStays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.api.put(pod("plain", nil))
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")
	s.api.put(pod("plain", asksForCheckpoint))
	r.awaitServing(time.Second, "a", "plain")
	for _, pod := range r.latest().Pods {
		if pod.ManagedFields != nil || pod.Status.ContainerStatuses != nil || len(pod.Spec.Containers) != 1 || pod.Status.PodIP == "" {
			t.Errorf("%s is kept as %+v", pod.Name, pod)
		}
	}
	s.api.put(pod("plain", nil))
	r.awaitServing(time.Second, "a")
}

// TestKilled is the life of most outages: the process ends, nobody listens, it comes back.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t).direct(t)
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")

	s.server.kill()
	r.awaitState(time.Second, checkpoint.APILost)
	s.api.questions()
	s.api.put(pod("b", asksForCheckpoint)) // by another server, so to say

	s.server.start()
	r.awaitServing(2*time.Second, "a", "b")
	if got := s.api.questions(); !slices.Equal(got, []string{"WATCHLIST"}) {
		t.Errorf("it asked %v, want a fresh and consistent list", got)
	}
	if got, want := r.log("to"), "serving lost serving"; got != want {
		t.Errorf("logged states: %s, want %s", got, want)
	}
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
				t.Parallel()
				s := newSite(t)
				r := run(t, s.path)
				r.awaitServing(2*time.Second, "a")
				s.api.answer(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == "/readyz" && !readyToo {
						return false
					}
					w.Header().Set("Retry-After", "60")
					status(w, code)
					return true
				})
				s.api.endWatches()
				r.awaitState(time.Second, want)
				s.api.answer(nil)
				r.awaitServing(2*time.Second, "a")
				if got, want := r.log("to"), "serving "+want.String()+" serving"; got != want {
					t.Errorf("logged states: %s, want %s", got, want)
				}
			})
		}
	}
}

// TestCertificates replaces what is wrong on either side, and the client goes on without a restart.
func TestCertificates(t *testing.T) {
	stranger := newAuthority(t)
	for name, change := range map[string]func(s *site, t *testing.T){
		"the server's has expired":   func(s *site, _ *testing.T) { s.server.certify(s.authority.issue(expired)) },
		"the server's is a stranger": func(s *site, _ *testing.T) { s.server.certify(stranger.issue()) },
		"the server's is of another": func(s *site, _ *testing.T) { s.server.certify(s.authority.issue(ofOtherHost)) },
		"ours has expired":           func(s *site, t *testing.T) { s.renew(t, s.authority.issue(expired)) },
		"ours is a stranger":         func(s *site, t *testing.T) { s.renew(t, stranger.issue()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			change(s, t)
			r := run(t, s.path)
			r.awaitState(time.Second, checkpoint.APIRefusing)
			s.renew(t, s.authority.issue())
			s.server.certify(s.authority.issue())
			r.awaitServing(2*time.Second, "a")
		})
	}
}

// renew replaces the client's certificate as the kubelet does.
func (s *site) renew(t *testing.T, client []byte) {
	t.Helper()
	write(t, filepath.Join(filepath.Dir(s.path), "client-current.pem"), client)
}

func TestKubeconfigIsReplaced(t *testing.T) {
	t.Parallel()
	s, other := newSite(t).direct(t), newSite(t)
	other.api.put(pod("b", asksForCheckpoint))
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")
	s.server.kill()
	r.awaitState(time.Second, checkpoint.APILost)
	write(t, s.path, []byte("not a kubeconfig"))
	r.awaitState(time.Second, checkpoint.APILost)
	kubeconfig(t, s.path, other.server.addr, other.authority, other.authority.issue())
	r.awaitServing(2*time.Second, "a", "b")
}

// TestSilence is about servers that don't say that they don't answer.
func TestSilence(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.cable.die()
		r := run(t, s.path)
		r.awaitState(10*time.Second, checkpoint.APILost)
		s.cable.revive()
		r.awaitServing(2*time.Second, "a")
	})
	t.Run("in the middle of a watch", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		r := run(t, s.path)
		r.awaitServing(2*time.Second, "a")
		s.cable.die()
		r.awaitState(10*time.Second, checkpoint.APILost)
		s.cable.revive()
		r.awaitServing(2*time.Second, "a")
	})
	t.Run("to this request", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		silence := make(chan struct{})
		s.api.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/readyz" {
				<-silence
			}
			return false
		})
		r := run(t, s.path)
		r.awaitState(10*time.Second, checkpoint.APILost)
		s.api.answer(nil)
		close(silence)
		r.awaitServing(2*time.Second, "a")
	})
}

// TestCut: a broken connection to a server that serves is no outage.
func TestCut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")
	for i := range 5 {
		s.cable.cut()
		r.await(time.Second, "unwatched", func(f Facts) bool { return !f.Current || len(f.Pods) > i })
		s.api.put(pod(fmt.Sprintf("b%d", i), asksForCheckpoint))
		r.awaitServing(2*time.Second, append([]string{"a"}, []string{"b0", "b1", "b2", "b3", "b4"}[:i+1]...)...)
	}
	if got, want := r.states(), []checkpoint.API{checkpoint.APIServing}; !slices.Equal(got, want) {
		t.Errorf("states: %v, want %v", got, want)
	}
}

// TestWatchEndsEarly: a server that ends watches early may be another one than before.
func TestWatchEndsEarly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r := run(t, s.path)
	r.awaitServing(2*time.Second, "a")
	s.api.questions()
	s.api.restore()
	s.api.endWatches()
	r.awaitServing(2 * time.Second)
	if got := s.api.questions(); !slices.Equal(got, []string{"WATCHLIST"}) {
		t.Errorf("it asked %v, want a fresh and consistent list", got)
	}
}
