package apiclient

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// told keeps the Events that a fake API server is sent.
type told struct {
	mu     sync.Mutex
	events []*corev1.Event
	fail   bool
}

func (k *told) take(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail {
		status(w, http.StatusInternalServerError)
		return true
	}
	data, _ := io.ReadAll(r.Body)
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	event, ok := object.(*corev1.Event)
	if err != nil || !ok || r.URL.Path != "/api/v1/namespaces/kube-system/events" {
		status(w, http.StatusBadRequest)
		return true
	}
	k.events = append(k.events, event)
	w.WriteHeader(http.StatusCreated)
	return true
}

func (k *told) messages() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []string
	for _, e := range k.events {
		all = append(all, e.Message)
	}
	return strings.Join(all, ",")
}

// await waits until exactly these messages were told.
func (k *told) await(t *testing.T, want string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); k.messages() != want; {
		if time.Now().After(deadline) {
			t.Fatalf("told %q, want %q", k.messages(), want)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func event(message string) Event {
	return Event{Namespace: "kube-system", Pod: "a", UID: "uid-of-a", Reason: "CheckpointStored", Message: message}
}

func TestEventsAreOfThePodAndToldOnce(t *testing.T) {
	t.Parallel()
	s, k := newSite(t), new(told)
	s.api.answer(k.take)
	r := run(t, s.path)
	r.awaitServing(5*time.Second, "a")
	r.Tell(event("one"))
	r.Tell(event("one"))
	warning := event(strings.Repeat("x", 5000))
	warning.Warning, warning.Pod = true, strings.Repeat("p", 253)
	r.Tell(warning)
	r.Tell(event("three"))
	k.await(t, "one,"+strings.Repeat("x", 1024)+",three")
	e := k.events[0]
	if e.InvolvedObject.Name != "a" || e.InvolvedObject.UID != "uid-of-a" || e.InvolvedObject.Kind != "Pod" || e.Type != "Normal" || e.Source.Host != node || e.FirstTimestamp.IsZero() {
		t.Errorf("told %+v", e)
	}
	if w := k.events[1]; w.Type != "Warning" || len(w.Name) > 253 {
		t.Errorf("told %+v", w)
	}
}

// TestEventsOfAnOutageAreToldAfterIt: the activation is what people look for.
func TestEventsOfAnOutageAreToldAfterIt(t *testing.T) {
	t.Parallel()
	s, k := newSite(t).direct(t), new(told)
	s.api.answer(k.take)
	r := run(t, s.path)
	r.awaitServing(5*time.Second, "a")
	s.server.kill()
	r.awaitState(5*time.Second, checkpoint.APILost)
	r.Tell(event("away"))
	for range 1000 { // an outage must not fill the memory
		r.Tell(event(time.Now().String()))
	}
	r.Client.mu.Lock()
	if n := len(r.events.waiting); n > maxEvents {
		t.Errorf("%d events wait", n)
	}
	r.events.waiting = r.events.waiting[:1]
	r.Client.mu.Unlock()
	s.server.start()
	k.await(t, "away")
}

func TestAnEventThatIsRefusedIsDropped(t *testing.T) {
	t.Parallel()
	s, k := newSite(t), new(told)
	k.fail = true
	s.api.answer(k.take)
	r := run(t, s.path)
	r.awaitServing(5*time.Second, "a")
	r.Tell(event("one"))
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(r.log(""), "event is dropped"); {
		if time.Now().After(deadline) {
			t.Fatal("it was not dropped")
		}
		<-time.After(5 * time.Millisecond)
	}
	if r.latest().State != checkpoint.APIServing {
		t.Error("an Event that fails says something of the API server")
	}
}
