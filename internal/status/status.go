// Package status is what the agent tells about itself to people who can't ask the API server: a JSON file beside the
// lock, and what can be read from disk without an agent.
//
// The file is information, not memory: nobody decides by it, and it is gone with the next boot, as its directory is.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Format is the version of the schema.
const Format = "1"

// Report is everything that `checkpointer status --json` prints. Each field is described in docs/commands/status.md.
type Report struct {
	Format   string     `json:"format"`
	Lock     Lock       `json:"lock"`
	Agent    *Agent     `json:"agent"` // null: no agent has spoken since boot, and the rest is what lies on disk
	Written  *time.Time `json:"written"`
	API      Source     `json:"api"`
	Kubelet  Source     `json:"kubelet"`
	Runtime  Source     `json:"runtime"`
	Lineages []Lineage  `json:"lineages"`
	Refused  []Refused  `json:"refused"`
}

// Lock is whether a copy of the agent acts now.
type Lock struct {
	Path string `json:"path"`
	Held bool   `json:"held"`
}

// Agent is the copy that wrote the report.
type Agent struct {
	Version   string    `json:"version"`
	Node      string    `json:"node"`
	Namespace string    `json:"namespace"` // of its pod; empty outside of one
	Pod       string    `json:"pod"`
	PID       int       `json:"pid"` // in its own PID namespace
	Leading   time.Time `json:"leadingSince"`
}

// Source is what the agent last heard of a source of facts.
type Source struct {
	State  string    `json:"state"` // "unknown" until it was heard
	Since  time.Time `json:"since"`
	Detail string    `json:"detail"` // in the source's own words
}

// Lineage is where one lineage stands.
type Lineage struct {
	Lineage   string    `json:"lineage"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"` // the parent's name
	UID       string    `json:"uid"` // the parent's
	Self      bool      `json:"self"`
	Phase     string    `json:"phase"`
	Reason    string    `json:"reason"`
	Since     time.Time `json:"since"`
	Up        bool      `json:"up"`

	Generation string     `json:"generation"` // of the checkpoint on disk; empty without one
	SavedAt    *time.Time `json:"savedAt"`
	Previous   string     `json:"previous"` // the generation before, while it is kept
	Current    *bool      `json:"current"`  // whether the checkpoint is of the parent as it is now; null: not known

	Handover string   `json:"handover"`
	Ports    []string `json:"ports"`
	QOSClass string   `json:"qosClass"` // the parent's
	Warnings []string `json:"warnings"` // how the checkpoint differs from the parent

	Stuck       string `json:"stuck"` // the UID of the pod that the kubelet manages in vain
	LoadBearing bool   `json:"loadBearing"`
	Failed      string `json:"failed"`   // the generation that did not come up
	HandedTo    string `json:"handedTo"` // of the checkpointer: the UID of the revision that was given the lead last
}

// Refused is a pod that asks for a checkpoint and can't have one.
type Refused struct {
	Namespace string   `json:"namespace"`
	Pod       string   `json:"pod"`
	UID       string   `json:"uid"`
	Reasons   []string `json:"reasons"`
}

// File is where the agent that holds the lock writes its report.
func File(lock string) string { return strings.TrimSuffix(lock, ".lock") + ".status.json" }

// Write replaces the report. It is there as a whole, or as it was before.
func (r Report) Write(path string) (err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	_, err = temp.Write(append(data, '\n'))
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp.Name()))
	}
	return err
}

// Read is the report that the last agent wrote. The error is fs.ErrNotExist if none has since boot.
func Read(path string) (Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is no report of an agent: %w", path, err)
	}
	if r.Format == Format && (r.Agent == nil || r.Written == nil) {
		return r, fmt.Errorf("%s is no report of an agent: it does not say whose, and of when", path)
	}
	if r.Format != Format {
		return r, fmt.Errorf("%s has the format %q, and this program knows %q: use the program of the agent that runs", path, r.Format, Format)
	}
	return r, nil
}

// Held says whether a process holds the lock. It does not wait, and makes no file.
func Held(lock string) (bool, error) {
	file, err := os.Open(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close() // which gives back what follows
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
