package manifest

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestIsParent(t *testing.T) {
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"asks":              {map[string]string{AnnotationCheckpoint: "true"}, true},
		"asks, says api":    {map[string]string{AnnotationCheckpoint: "true", annotationSource: "api"}, true},
		"does not ask":      {nil, false},
		"says no":           {map[string]string{AnnotationCheckpoint: "false"}, false},
		"mirror":            {map[string]string{AnnotationCheckpoint: "true", annotationMirror: "h"}, false},
		"static":            {map[string]string{AnnotationCheckpoint: "true", annotationSource: "file"}, false},
		"is a checkpoint":   {map[string]string{AnnotationCheckpoint: "true", AnnotationCheckpointOf: "p"}, false},
		"of another prefix": {map[string]string{"checkpoint": "true"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
			if got := IsParent(pod); got != test.want {
				t.Errorf("IsParent is %v", got)
			}
		})
	}
}

func TestLineageOf(t *testing.T) {
	for name, test := range map[string]struct {
		kind, owner, uid, hash string
		controller             bool
		want                   checkpoint.Lineage
	}{
		"bare":                      {want: "ns/Pod/p"},
		"daemon set":                {"DaemonSet", "web", "u1", "", true, "ns/DaemonSet/web"},
		"deployment":                {"ReplicaSet", "web-6d4cf", "u2", "6d4cf", true, "ns/ReplicaSet/web"},
		"replica set alone":         {"ReplicaSet", "web-6d4cf", "u3", "", true, "ns/ReplicaSet/web-6d4cf"},
		"hash that is not its name": {"ReplicaSet", "web", "u4", "6d4cf", true, "ns/ReplicaSet/web"},
		"stateful set":              {"StatefulSet", "db", "u5", "", true, "ns/Pod/p"},
		"owner, no controller":      {"DaemonSet", "web", "u6", "", false, "ns/Pod/p"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			if test.hash != "" {
				pod.Labels = map[string]string{"pod-template-hash": test.hash}
			}
			if test.kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: test.kind, Name: test.owner, UID: types.UID(test.uid), Controller: &test.controller}}
			}
			if got := LineageOf(pod); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestRunning(t *testing.T) {
	always, onFailure := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}},
		Containers:     []corev1.Container{{Name: "web"}, {Name: "may-end", RestartPolicy: &onFailure}, {Name: "again", RestartPolicy: &always}},
	}}
	if got, want := Running(pod), []string{"again", "sidecar", "web"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
