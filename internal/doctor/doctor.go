// Package doctor says whether this node would survive a power cut now, and what stands in the way.
//
// # Guarantees
//
//   - It changes nothing, on disk or elsewhere, and needs no API server.
//   - What could not be found out is no finding of its own kind: that it could not, is one.
package doctor

import "cmp"

// Severity is what a finding means for a power cut now.
type Severity string

const (
	// Error : something would not come back, or nobody can tell.
	Error Severity = "error"
	// Warning : everything comes back, but not as it was, or not for long.
	Warning Severity = "warning"
)

// Kind is one thing that can be wrong.
type Kind struct {
	Name     string
	Severity Severity
	Means    string // what would happen
	Remedy   string // what a person can do

	find func(*Facts) []string // what is wrong, one line for each case
}

// Finding is one case of a kind.
type Finding struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Means    string   `json:"means"`
	Remedy   string   `json:"remedy"`
}

// Kinds are all that is looked for, in the order in which to cure it.
func Kinds() []Kind {
	var all []Kind
	for _, some := range [][]Kind{machineKinds, agentKinds, checkpointKinds, podKinds, clusterKinds} {
		all = append(all, some...)
	}
	return all
}

// Examine lists what is wrong: first what makes the node not survive.
func Examine(f *Facts) (findings []Finding) {
	for _, severity := range []Severity{Error, Warning} {
		for _, kind := range Kinds() {
			if kind.Severity != severity {
				continue
			}
			for _, what := range kind.find(f) {
				findings = append(findings, Finding{kind.Name, kind.Severity, what, kind.Means, kind.Remedy})
			}
		}
	}
	return findings
}

// Survives says whether none of the findings is an error.
func Survives(findings []Finding) bool {
	for _, f := range findings {
		if f.Severity == Error {
			return false
		}
	}
	return true
}

// one is a finding if it is there.
func one(is bool, what string) []string {
	if !is {
		return nil
	}
	return []string{what}
}

// said is an error as a finding.
func said(err error) []string {
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}

func (c *Checkpoint) String() string { return cmp.Or(c.Namespace, "default") + "/" + c.Name }
