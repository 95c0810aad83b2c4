package apiclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// objects are what a fake API server has besides pods, by path.
var objects = map[string]any{
	"/api/v1/namespaces/default/services/kubernetes": corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Name: "other", Port: 1}, {Name: "https", Port: 443}}},
	},
	"/api/v1/nodes/" + node: corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: node, UID: "uid-of-node"},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.2"}},
	},
	"/api/v1/namespaces/kube-system/configmaps/settings": corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"k": "v"},
	},
	"/api/v1/namespaces/kube-system/persistentvolumeclaims/claim": corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk"},
	},
	"/api/v1/persistentvolumes/disk": corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "disk"},
	},
}

func serveObjects(w http.ResponseWriter, r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/pods") || r.URL.Path == readyPath {
		return false
	}
	object, ok := objects[r.URL.Path]
	if !ok {
		status(w, http.StatusNotFound)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(object)
	return true
}

// referring is a pod whose variables come from a ConfigMap and a Secret, and whose data lies on a claim.
func referring(secret string) *corev1.Pod {
	p := pod("a", asksForCheckpoint)
	p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
	}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"},
	}}}
	return p
}

func TestReads(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint), pod("plain", nil))
	api.answer(serveObjects)
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		surroundings, err := r.Surroundings(t.Context())
		want := Surroundings{ServiceHost: "10.96.0.1", ServicePort: "443", KubeletVersion: "v1.37.2"}
		if err != nil || surroundings != want {
			t.Errorf("surroundings: %+v, %v; want %+v", surroundings, err, want)
		}
		if uid, err := r.NodeUID(t.Context()); err != nil || uid != "uid-of-node" {
			t.Errorf("node UID: %q, %v", uid, err)
		}
		api.questions()
		pods, err := r.LivePods(t.Context())
		if asked := api.questions(); err != nil || len(pods) != 2 || !slices.Equal(asked, []string{"LIST"}) {
			t.Errorf("%d live pods by %v, %v; want 2 by a consistent LIST", len(pods), asked, err)
		}
	})
}

func TestReferences(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	api.answer(serveObjects)
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		refs, err := r.References(t.Context(), referring("missing"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"k": "v"}, refs.ConfigMaps["settings"].Data); diff != "" {
			t.Errorf("ConfigMap (-want +got):\n%s", diff)
		}
		if refs.PVCs["claim"] == nil || refs.PVs["disk"] == nil {
			t.Errorf("the claim or its volume is missing: %v, %v", refs.PVCs, refs.PVs)
		}
		if len(refs.Secrets) != 0 {
			t.Errorf("Secrets: %v, want none: the API server says that there is no such", refs.Secrets)
		}
	})
}

// TestFieldsOfANewerServerAreFound: the watch drops them. Of another pod of that name, or of none, nothing is said.
func TestFieldsOfANewerServerAreFound(t *testing.T) {
	field := func(path string) []manifest.Finding {
		return []manifest.Finding{{Path: path, Problem: "this version does not know the field", Remedy: "update the checkpointer, or correct the name"}}
	}
	for name, test := range map[string]struct {
		answer string
		want   manifest.Unknown
		fails  string
	}{
		"none":     {`{"metadata":{"uid":"uid-of-a"},"spec":{"hostNetwork":true}}`, manifest.Unknown{}, ""},
		"some":     {`{"metadata":{"uid":"uid-of-a","new":1},"spec":{"newer":true},"status":{"newest":1}}`, manifest.Unknown{Spec: field("spec.newer"), Elsewhere: field("metadata.new")}, ""},
		"replaced": {`{"metadata":{"uid":"another"},"spec":{"newer":true}}`, manifest.Unknown{}, "another one has its name"},
		"no pod":   {`<html>please log in</html>`, manifest.Unknown{}, "invalid character"},
		"nothing":  {``, manifest.Unknown{}, "unexpected end"},
		"deleted":  {"404", manifest.Unknown{}, "Not Found"},
		"refused":  {"403", manifest.Unknown{}, "Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			watched := pod("a", asksForCheckpoint)
			api := newFakeAPI(watched)
			bubble(t, api, func(t *testing.T, r *running, _ *memory) {
				api.answer(func(w http.ResponseWriter, r *http.Request) bool {
					if accept, version := r.Header.Get("Accept"), r.URL.Query().Get("resourceVersion"); r.URL.Path != podPath(watched) || accept != "application/json" || version != watched.ResourceVersion {
						t.Errorf("asked for version %q of %s as %s", version, r.URL.Path, accept)
					}
					if code, err := strconv.Atoi(test.answer); err == nil {
						status(w, code)
					} else {
						fmt.Fprint(w, test.answer)
					}
					return true
				})
				refs, err := r.References(t.Context(), watched)
				if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				if diff := cmp.Diff(test.want, refs.Unknown); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// TestUnknownIsNotAbsent: what could not be read is not what is not there.
func TestUnknownIsNotAbsent(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"forbidden":              func(w http.ResponseWriter) { status(w, http.StatusForbidden) },
		"failing":                func(w http.ResponseWriter) { status(w, http.StatusInternalServerError) },
		"a load balancer's page": func(w http.ResponseWriter) { http.Error(w, "default backend - 404", http.StatusNotFound) },
		"a portal's page":        func(w http.ResponseWriter) { fmt.Fprint(w, "<html>please log in</html>") },
	} {
		t.Run(name, func(t *testing.T) {
			api := newFakeAPI(pod("a", asksForCheckpoint))
			bubble(t, api, func(t *testing.T, r *running, _ *memory) {
				api.answer(func(w http.ResponseWriter, _ *http.Request) bool { answer(w); return true })
				if refs, err := r.References(t.Context(), referring("credentials")); err == nil {
					t.Errorf("references: %+v, want an error", refs)
				}
				if pods, err := r.LivePods(t.Context()); err == nil {
					t.Errorf("%d live pods, want an error", len(pods))
				}
				if uid, err := r.NodeUID(t.Context()); err == nil {
					t.Errorf("node UID %q, want an error", uid)
				}
				api.answer(nil)
				// A read that fails is no news of the server: the watch tells.
				if got, want := r.states(), []checkpoint.API{checkpoint.APIServing}; !slices.Equal(got, want) || !r.latest().Current {
					t.Errorf("states: %v, current %v; want %v, current", got, r.latest().Current, want)
				}
			})
		})
	}
}

// TestReadsEnd: a read of a server that hangs ends, and so does one that is no longer wanted.
func TestReadsEnd(t *testing.T) {
	api := newFakeAPI(pod("a", asksForCheckpoint))
	bubble(t, api, func(t *testing.T, r *running, _ *memory) {
		api.answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
		start := time.Now()
		if _, err := r.LivePods(t.Context()); err == nil || time.Since(start) != requestTimeout {
			t.Errorf("it ended after %v with %v, want an error after %v", time.Since(start), err, requestTimeout)
		}
	})
}
