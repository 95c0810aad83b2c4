package apiclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// flushing writes at once, until it can't.
func flushing(w http.ResponseWriter, chunk func(i int) string) {
	w.Header().Set("Content-Type", "application/json")
	for i := 0; ; i++ {
		text := chunk(i)
		if _, err := io.WriteString(w, text); err != nil || text == "" {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// once is one answer that ends.
func once(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		flushing(w, func(i int) string { return text[:len(text)*max(0, 1-i)] })
	}
}

func eventOf(kind watch.EventType, p *corev1.Pod) string {
	data, err := json.Marshal(encode(kind, p))
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

// strange are answers to the request for our pods, a list or a watch.
var strange = map[string]func(http.ResponseWriter, *http.Request){
	"nothing":                  once(""),
	"null":                     once("null"),
	"a number":                 once("17"),
	"text":                     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") },
	"half of an answer":        once(`{"kind":"PodList","apiVersion":"v1","items":[{"metadata":`),
	"another kind":             once(`{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"}}]}`),
	"an unknown kind":          once(`{"kind":"Nonsense","apiVersion":"example.test/v9"}`),
	"wrong types":              once(`{"kind":"PodList","apiVersion":"v1","metadata":7,"items":{"a":"b"}}`),
	"wrong types in an event":  once(`{"type":7,"object":[]}`),
	"an event without object":  once(`{"type":"ADDED"}` + "\n"),
	"an event of no pod":       once(`{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}}` + "\n"),
	"an event of unknown type": once(`{"type":"MELTED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"n"}}}` + "\n"),
	"an error without status":  once(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1"}}` + "\n"),
	"deep nesting":             once(strings.Repeat(`{"a":[`, 1<<20)),
	"an event of deep nesting": once(`{"type":"ADDED","object":` + strings.Repeat(`{"a":[`, 1<<20) + "\n"),
	"protobuf that is none": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		w.Write([]byte("k8s\x00\xff\xff\xff\xff"))
	},
	"a watch in protobuf that is none": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		w.Write(bytes.Repeat([]byte{0xff}, 1<<20))
	},
	"space without end": func(w http.ResponseWriter, _ *http.Request) {
		space := strings.Repeat(" ", 1<<20)
		flushing(w, func(int) string { return space })
	},
	"an object without end": func(w http.ResponseWriter, _ *http.Request) {
		text := strings.Repeat("x", 1<<20)
		flushing(w, func(i int) string {
			if i == 0 {
				return `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"`
			}
			return text
		})
	},
	"pods without end": func(w http.ResponseWriter, _ *http.Request) {
		event := eventOf(watch.Added, pod("NAME", nil))
		flushing(w, func(i int) string { return strings.ReplaceAll(event, "NAME", fmt.Sprint(i)) })
	},
	"one byte a second": func(w http.ResponseWriter, r *http.Request) {
		flushing(w, func(i int) string {
			select {
			case <-time.After(time.Second):
				return `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + strings.Repeat("x", 1000)[i:i+1]
			case <-r.Context().Done():
				return ""
			}
		})
	},
	"the head, and then nothing": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
}

// TestStrangeAnswers: whatever a server answers, what is known stays, nothing is current, the agent lives, says one thing,
// asks no more than it must, and goes on when the server is in its right mind again.
func TestStrangeAnswers(t *testing.T) {
	for name, answer := range strange {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(pod("a", asksForCheckpoint))
			bubble(t, api, func(t *testing.T, r *running, _ *memory) {
				var asked atomic.Int64 // requests may overlap
				api.answer(func(w http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == readyPath {
						return false
					}
					asked.Add(1)
					answer(w, r)
					return true
				})
				api.endWatches()
				r.await(2*time.Minute, "not current", func(f Facts) bool { return !f.Current })
				if pods, err := r.LivePods(t.Context()); err == nil {
					t.Errorf("it is taken for a list of %d live pods", len(pods))
				}
				if uid, err := r.NodeUID(t.Context()); err == nil {
					t.Errorf("it is taken for a Node with the UID %q", uid)
				}
				if refs, err := r.References(t.Context(), referring("credentials")); err == nil {
					t.Errorf("it is taken for references: %+v", refs)
				}
				time.Sleep(8 * time.Second)
				if f := r.latest(); f.Current || f.State == checkpoint.APIUnknown || !slices.Equal(names(f), []string{"a"}) {
					t.Errorf("state %v, current %v, pods %v; want what was known, and that it is not current", f.State, f.Current, names(f))
				}
				if asked.Load() > 30 {
					t.Errorf("it asked %d times in about 8 seconds", asked.Load())
				}
				if got := strings.Count(r.log("to"), " "); got > 2 {
					t.Errorf("it says too much: %s", r.log("message"))
				}
				api.answer(nil)
				r.awaitServing(90*time.Second, "a")
				if got, want := r.log("message"), "used again"; strings.Contains(got, "can't be used") && !strings.Contains(got, want) {
					t.Errorf("it does not say that it is over: %s", got)
				}
			})
		})
	}
}

// TestFloodIsNotKept: a server without end takes no more memory than a full node.
func TestFloodIsNotKept(t *testing.T) {
	var (
		most int64
		kept []any
	)
	store := newPodStore(node, func(err error) { panic(err) }, func([]*corev1.Pod) {})
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, errTooMany) {
				t.Errorf("ended by %v, want %v", err, errTooMany)
			}
		}()
		before, transform := heap(), store.Transformer()
		for i := 0; ; i++ {
			p, err := transform(pod(fmt.Sprint(i), nil))
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, p)
			if i%1000 == 999 {
				most = max(most, heap()-before)
			}
		}
	}()
	if most > 32<<20 {
		t.Errorf("%d MiB are taken", most>>20)
	}
	body := &boundedBody{ReadCloser: io.NopCloser(endless{}), left: maxAnswer}
	if n, err := io.Copy(io.Discard, body); err == nil || n != maxAnswer {
		t.Errorf("%d bytes were read, and then %v", n, err)
	}
	runtime.KeepAlive(kept)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestPodsOfNoSense: what the server says of pods may lack everything, or come in any order.
func TestPodsOfNoSense(t *testing.T) {
	var told []*corev1.Pod
	store := newPodStore(node, func(error) {}, func(pods []*corev1.Pod) { told = pods })
	for _, change := range []func() error{
		func() error { return store.Delete(pod("never-heard-of", nil)) },
		func() error { return store.Add(nil) },
		func() error { return store.Update(new(corev1.Pod)) },
		func() error {
			return store.Replace([]any{nil, "pod", new(corev1.Pod), (*corev1.Node)(nil), pod("a", asksForCheckpoint), pod("a", asksForCheckpoint)}, "")
		},
		func() error { return store.Delete(metav1.Object(nil)) },
		func() error { return store.Add(pod("b", asksForCheckpoint)) },
		func() error { return store.Add(pod("b", asksForCheckpoint)) },
	} {
		if err := change(); err != nil {
			t.Error(err)
		}
	}
	if got := names(Facts{Pods: told}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("told of %v, want a and b", got)
	}
}

// FuzzAnswers has answers to our reads decoded, as client-go does it.
func FuzzAnswers(f *testing.F) {
	for _, object := range []any{
		corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{*pod("a", asksForCheckpoint)}},
		objects["/api/v1/nodes/"+node], objects["/api/v1/namespaces/kube-system/configmaps/settings"], pod("a", nil),
	} {
		data, err := json.Marshal(object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, false)
	}
	f.Add([]byte("k8s\x00\n\x0b\n\x02v1\x12\x07PodList\x12\x07\n\x05\x12\x011\x1a\x00"), true)
	c := &Client{config: Config{NodeName: node}}
	f.Fuzz(func(t *testing.T, answer []byte, protobuf bool) {
		kind := "application/json"
		if protobuf {
			kind = "application/vnd.kubernetes.protobuf"
		}
		reading, err := clientFor(&rest.Config{Host: "api.example.test"}, roundTripper(func(request *http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Request: request,
				Body: io.NopCloser(bytes.NewReader(answer)),
			}, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		c.access = &access{reading: reading}
		pods, err := c.LivePods(t.Context())
		if err == nil && !bytes.Contains(answer, []byte("PodList")) {
			t.Errorf("%q is taken for %d live pods", answer, len(pods))
		}
		for _, p := range pods {
			if p.Spec.NodeName != node {
				t.Errorf("%+v is none of our pods", p)
			}
		}
		if uid, err := c.NodeUID(t.Context()); err == nil && uid == "" {
			t.Error("a Node without a UID is no error")
		}
		if refs, err := c.References(t.Context(), referring("settings")); err == nil && (refs.ConfigMaps["settings"] == nil || refs.Secrets["settings"] == nil) {
			t.Errorf("references without what was asked for, and no error: %+v", refs)
		}
	})
}
