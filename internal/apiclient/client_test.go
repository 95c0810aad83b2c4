package apiclient

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

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
