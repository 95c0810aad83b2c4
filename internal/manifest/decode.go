package manifest

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

// Unknown lists the fields of a pod that this version does not know, because the API server is newer: they would be lost
// without a word. Convert refuses a pod for those in its spec, and warns of the others. Those of the status are not
// among them, because nothing is made of it.
type Unknown struct {
	Spec, Elsewhere []Finding
}

// Decode reads a pod from the JSON that an API server gave.
func Decode(data []byte) (*corev1.Pod, Unknown, error) {
	pod := &corev1.Pod{}
	unknown, err := DecodeInto(data, pod, "spec")
	return pod, unknown, err
}

// DecodeInto reads an object that has a pod's spec at the path spec.
func DecodeInto(data []byte, object any, spec string) (Unknown, error) {
	problems, err := json.UnmarshalStrict(data, object)
	if err != nil {
		return Unknown{}, err
	}
	const update = "update the checkpointer, or correct the name"
	const most = 100 // that json.UnmarshalStrict reports
	var unknown Unknown
	if len(problems) >= most {
		unknown.Spec = append(unknown.Spec, Finding{spec, "there are more unknown fields than can be told apart", update})
	}
	for _, problem := range problems {
		var field json.FieldError
		if !errors.As(problem, &field) {
			return Unknown{}, problem
		}
		finding := Finding{field.FieldPath(), describe(problem), update}
		switch {
		case isBelow(finding.Path, spec):
			unknown.Spec = append(unknown.Spec, finding)
		case !isBelow(finding.Path, "status"):
			unknown.Elsewhere = append(unknown.Elsewhere, finding)
		}
	}
	return unknown, nil
}

func isBelow(path, root string) bool { return path == root || strings.HasPrefix(path, root+".") }

// describe says what a strict decoding error is about, without the path.
func describe(problem error) string {
	if strings.HasPrefix(problem.Error(), "duplicate field") {
		return "the field is given twice"
	}
	return "this version does not know the field"
}
