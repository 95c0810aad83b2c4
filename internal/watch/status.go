package watch

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// reporter keeps the status file.
type reporter struct {
	file  string // empty: none
	agent status.Agent
	last  status.Report

	// What the sources last said, for people.
	api, kubelet, runtime string
	runtimeSince          time.Time
}

// writeStatus is what failed writes of the status file are held back by.
const writeStatus = "status file"

// report writes what the loop knows, if anything of it has changed. Nobody decides by it, so that a failure is only said.
func (l *Loop) report() {
	if l.reporter.file == "" || l.retries.blocked(writeStatus) {
		return
	}
	now := l.describe()
	if reflect.DeepEqual(now, l.reporter.last) {
		return
	}
	written := now
	at := time.Now()
	written.Written = &at
	if err := written.Write(l.reporter.file); err != nil {
		_, news := l.retries.failed(writeStatus)
		l.Log.WithLevel(levelOf(zerolog.WarnLevel, news)).Err(err).Msg("the status file can't be written: the command status tells of an earlier time")
		return
	}
	l.retries.forget(writeStatus)
	l.reporter.last = now
}

// leave takes the status file away, with the last of what is ours.
func (r *reporter) leave() error {
	if r.file == "" {
		return nil
	}
	if err := os.Remove(r.file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (l *Loop) describe() status.Report {
	r, w := &l.reporter, &l.world
	report := status.Report{
		Format:  status.Format,
		Agent:   &r.agent,
		API:     status.Source{State: w.API.String(), Since: w.APISince, Detail: r.api},
		Kubelet: status.Source{State: w.Kubelet.String(), Since: w.KubeletSince, Detail: r.kubelet},
		Runtime: status.Source{State: w.Runtime.String(), Since: r.runtimeSince, Detail: r.runtime},
	}
	for lineage, state := range l.states {
		report.Lineages = append(report.Lineages, l.describeLineage(lineage, state))
	}
	slices.SortFunc(report.Lineages, func(a, b status.Lineage) int { return cmp.Compare(a.Lineage, b.Lineage) })
	for uid, render := range l.renders {
		if render.state == checkpoint.Refused {
			pod := l.pods[uid]
			report.Refused = append(report.Refused, status.Refused{
				Namespace: pod.Namespace, Pod: pod.Name, UID: string(uid), Reasons: render.refusal,
			})
		}
	}
	slices.SortFunc(report.Refused, func(a, b status.Refused) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return report
}

func (l *Loop) describeLineage(lineage checkpoint.Lineage, state checkpoint.State) status.Lineage {
	row := status.Lineage{
		Lineage: string(lineage),
		Self:    lineage == l.Policy.Self,
		Phase:   state.Phase.String(),
		Reason:  string(state.Reason),
		Since:   state.Since,
		Up:      state.Up,
	}
	stored := l.checkpointsOf(lineage)
	row.Describe(stored)
	row.Mark(state.Marks)
	parent := l.newestParent(lineage)
	if parent == nil {
		return row
	}
	row.Namespace, row.Pod, row.UID = parent.Namespace, parent.Name, string(parent.UID)
	if parent.Rendering == checkpoint.Rendered {
		current := slices.ContainsFunc(stored, func(c checkpoint.Checkpoint) bool { return c.Digest == parent.Digest })
		row.Current = &current
	}
	row.QOSClass = string(l.pods[parent.UID].Status.QOSClass)
	row.Warnings = linesOf(l.renders[parent.UID].result.Warnings)
	return row
}

func (l *Loop) newestParent(lineage checkpoint.Lineage) (newest *checkpoint.Parent) {
	for i := range l.world.Parents {
		p := &l.world.Parents[i]
		if p.Lineage == lineage && !p.Deleting && (newest == nil || p.Created.After(newest.Created)) {
			newest = p
		}
	}
	return newest
}

func linesOf(findings []manifest.Finding) (lines []string) {
	for _, f := range findings {
		lines = append(lines, f.String())
	}
	return lines
}
