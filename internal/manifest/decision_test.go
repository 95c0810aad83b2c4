package manifest

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allDecisions pairs every type whose fields are decided about with the decisions. The title is the documentation's.
var allDecisions = []struct {
	title     string
	of        any
	decisions decisions
}{
	{"Metadata", metav1.ObjectMeta{}, objectMetaFields},
	{"The pod", corev1.PodSpec{}, podSpecFields},
	{"Containers: init, sidecar and regular", corev1.Container{}, containerFields},
	{"", corev1.EphemeralContainerCommon{}, containerFields}, // all of it goes, with the pod's field ephemeralContainers
	{"Volume mounts", corev1.VolumeMount{}, volumeMountFields},
	{"Variables: envFrom", corev1.EnvFromSource{}, envFromFields},
	{"Variables: env", corev1.EnvVar{}, envFields},
	{"Variables: sources", corev1.EnvVarSource{}, envSourceFields},
	{"Volumes", corev1.VolumeSource{}, volumeFields},
	{"Projected volumes", corev1.ProjectedVolumeSource{}, projectedFields},
	{"Projections", corev1.VolumeProjection{}, projectionFields},
	{"PersistentVolumes behind claims", corev1.PersistentVolumeSource{}, persistentVolumeFields},
}

// A field of a later Kubernetes version fails here until somebody has decided what becomes of it.
func TestEveryFieldIsDecided(t *testing.T) {
	for _, test := range allDecisions {
		typ := reflect.TypeOf(test.of)
		known := make(map[string]bool)
		for _, field := range fieldsOf(typ) {
			known[field] = true
			if field != "" && test.decisions[field].action == undecided {
				t.Errorf("%s.%s: no decision", typ, field)
			}
		}
		for field, decided := range test.decisions {
			if !known[field] {
				t.Errorf("%s has no field %s", typ, field)
			}
			if decided.action != keep && decided.why == "" {
				t.Errorf("%s.%s: no reason", typ, field)
			}
			if decided.action == refuse && decided.remedy == "" {
				t.Errorf("%s.%s: no remedy", typ, field)
			}
		}
	}
}

func TestUndecidedFieldIsRefused(t *testing.T) {
	var findings []Finding
	decisions{"name": {action: keep}}.apply(&corev1.VolumeMount{Name: "a", SubPath: "b"}, "mount", func(f Finding) { findings = append(findings, f) })
	if len(findings) != 1 || findings[0].Path != "mount.subPath" {
		t.Errorf("got %v", findings)
	}
}
