package manifest

import (
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

// Finding is one thing about a pod that a person should know.
type Finding struct {
	Path    string // of the field, as "spec.containers[web].env[TOKEN]"
	Problem string // what is wrong with it when there is no API server
	Remedy  string // what a person can do
}

// String is the finding in one line, safe to show on a terminal: a pod's names and paths are not ours.
func (f Finding) String() string {
	line := f.Path + ": " + f.Problem
	if f.Remedy != "" {
		line += "; " + f.Remedy
	}
	return terminal.Line(line)
}

// Refusal is the error of a pod that can't be checkpointed. It holds every reason, not just the first.
type Refusal struct {
	Findings []Finding
}

// Error is one line for each reason.
func (r *Refusal) Error() string {
	lines := make([]string, len(r.Findings))
	for i, finding := range r.Findings {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}
