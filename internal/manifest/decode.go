package manifest

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/json"
)

// Decode reads a pod from the JSON that an API server gave. The error is a *Refusal if its spec has fields that this
// version does not know, because the API server is newer: they would be lost without a word.
func Decode(data []byte) (*corev1.Pod, []Finding, error) {
	pod := &corev1.Pod{}
	warnings, err := DecodeInto(data, pod, "spec")
	return pod, warnings, err
}

// DecodeInto reads an object that has a pod's spec at the path spec. Fields that this version does not know are a
// *Refusal in the spec and a warning elsewhere, but for the status, which nothing is made of.
func DecodeInto(data []byte, object any, spec string) ([]Finding, error) {
	unknown, err := json.UnmarshalStrict(data, object)
	if err != nil {
		return nil, err
	}
	const update = "update the checkpointer, or correct the name"
	const most = 100 // that json.UnmarshalStrict reports
	var refusal Refusal
	var warnings []Finding
	if len(unknown) >= most {
		refusal.Findings = append(refusal.Findings, Finding{spec, "there are more unknown fields than can be told apart", update})
	}
	for _, problem := range unknown {
		var field json.FieldError
		if !errors.As(problem, &field) {
			return nil, problem
		}
		finding := Finding{field.FieldPath(), describe(problem), update}
		switch {
		case isBelow(finding.Path, spec):
			refusal.Findings = append(refusal.Findings, finding)
		case !isBelow(finding.Path, "status"):
			warnings = append(warnings, finding)
		}
	}
	if len(refusal.Findings) > 0 {
		return warnings, &refusal
	}
	return warnings, nil
}

func isBelow(path, root string) bool { return path == root || strings.HasPrefix(path, root+".") }

// describe says what a strict decoding error is about, without the path.
func describe(problem error) string {
	if strings.HasPrefix(problem.Error(), "duplicate field") {
		return "the field is given twice"
	}
	return "this version does not know the field"
}
