package apiclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const node = "node-1"

// fakeAPI answers as an API server does when asked for pods: LIST, WATCH and WatchList, with bookmarks.
type fakeAPI struct {
	mu          sync.Mutex
	version     int
	pods        []*corev1.Pod
	watches     map[chan metav1.WatchEvent]bool
	history     []past
	asked       []string // "LIST version", "WATCHLIST version", "WATCH version"
	noWatchList bool     // as before 1.34
	stuck       bool     // it does not end watches in their time
	noBookmark  bool     // it ends a WatchList before it is complete
	// instead, if set, answers in place of the above, unless it returns false.
	instead func(http.ResponseWriter, *http.Request) bool
}

// past is what a watch from an earlier version is sent.
type past struct {
	version int
	event   metav1.WatchEvent
}

func newFakeAPI(pods ...*corev1.Pod) *fakeAPI {
	f := &fakeAPI{version: 100, watches: make(map[chan metav1.WatchEvent]bool)}
	for _, pod := range pods {
		f.put(pod)
	}
	return f
}

func pod(name string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID("uid-of-" + name), Annotations: annotations, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example.test/" + name}}},
		Status:     corev1.PodStatus{PodIP: "10.1.2.3", ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}},
	}
}

var asksForCheckpoint = map[string]string{"checkpointer.alpha.coreos.com/checkpoint": "true"}

func (f *fakeAPI) put(pod *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	pod.ResourceVersion = strconv.Itoa(f.version)
	event := watch.Added
	i := slices.IndexFunc(f.pods, func(p *corev1.Pod) bool { return p.UID == pod.UID })
	if i >= 0 {
		event, f.pods[i] = watch.Modified, pod
	} else {
		f.pods = append(f.pods, pod)
	}
	f.send(event, pod)
}

func (f *fakeAPI) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	i := slices.IndexFunc(f.pods, func(p *corev1.Pod) bool { return p.Name == name })
	gone := f.pods[i].DeepCopy()
	gone.ResourceVersion = strconv.Itoa(f.version)
	f.pods = slices.Delete(f.pods, i, i+1)
	f.send(watch.Deleted, gone)
}

func (f *fakeAPI) send(event watch.EventType, object runtime.Object) {
	f.history = append(f.history, past{f.version, encode(event, object)})
	for w := range f.watches {
		w <- encode(event, object)
	}
}

// endWatches ends every watch as the end of its time does.
func (f *fakeAPI) endWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.watches {
		delete(f.watches, w)
		close(w)
	}
}

func (f *fakeAPI) answer(instead func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.instead = instead
}

// questions are what was asked since the last call.
func (f *fakeAPI) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	instead := f.instead
	f.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/readyz":
		fmt.Fprint(w, "ok")
	case f.named(r.URL.Path) != nil:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(f.named(r.URL.Path))
	case r.URL.Path != "/api/v1/pods" || query.Get("fieldSelector") != "spec.nodeName="+node:
		status(w, http.StatusForbidden)
	case query.Get("watch") == "":
		f.list(w, query.Get("resourceVersion"))
	case query.Get("sendInitialEvents") != "true":
		f.watch(w, r, "WATCH", func() []metav1.WatchEvent { return f.since(query.Get("resourceVersion")) })
	case f.noWatchList:
		status(w, http.StatusUnprocessableEntity)
	default:
		f.watch(w, r, "WATCHLIST", f.initial)
	}
}

// named is the pod whose path that is.
func (f *fakeAPI) named(path string) *corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, pod := range f.pods {
		if path == podPath(pod) {
			return pod
		}
	}
	return nil
}

func podPath(pod *corev1.Pod) string {
	return "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
}

func (f *fakeAPI) list(w http.ResponseWriter, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, strings.TrimSpace("LIST "+version))
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
	for _, pod := range f.pods {
		list.Items = append(list.Items, *pod)
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(list)
}

func (f *fakeAPI) since(version string) (events []metav1.WatchEvent) {
	seen, _ := strconv.Atoi(version)
	for _, p := range f.history {
		if p.version > seen {
			events = append(events, p.event)
		}
	}
	return events
}

// restore brings back the state of long ago, in which there was no pod.
func (f *fakeAPI) restore() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.pods, f.history = 7, nil, nil
}

func (f *fakeAPI) initial() []metav1.WatchEvent {
	var events []metav1.WatchEvent
	for _, pod := range f.pods {
		events = append(events, encode(watch.Added, pod))
	}
	if f.noBookmark {
		return events
	}
	end := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	end.ResourceVersion = strconv.Itoa(f.version)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return append(events, encode(watch.Bookmark, end))
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, kind string, initial func() []metav1.WatchEvent) {
	events := make(chan metav1.WatchEvent, 100)
	f.mu.Lock()
	f.asked = append(f.asked, strings.TrimSpace(kind+" "+r.URL.Query().Get("resourceVersion")))
	for _, event := range initial() {
		events <- event
	}
	f.watches[events] = true
	if kind == "WATCHLIST" && f.noBookmark {
		delete(f.watches, events)
		close(events)
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.watches, events)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	seconds, _ := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	timeout := time.Duration(seconds) * time.Second
	if f.stuck {
		timeout = 1 << 62
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	for {
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case event, ok := <-events:
			if !ok || out.Encode(event) != nil {
				return
			}
		}
	}
}

func encode(event watch.EventType, object runtime.Object) metav1.WatchEvent {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: raw}}
}

func status(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Message: http.StatusText(code),
	})
}
