package status

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

// Print writes the report for a person, as it is at now.
func (r Report) Print(w io.Writer, now time.Time) error {
	var b strings.Builder
	r.printAgent(&b, now)
	r.printLineages(&b, now)
	for _, refused := range r.Refused {
		fmt.Fprintf(&b, "\nrefused: %s/%s\n", terminal.Line(refused.Namespace), terminal.Line(refused.Pod))
		for _, reason := range refused.Reasons {
			fmt.Fprintf(&b, "  %s\n", terminal.Line(reason))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) printAgent(b *strings.Builder, now time.Time) {
	held := "is held by nobody: no copy of the agent acts"
	if r.Lock.Held {
		held = "is held: a copy of the agent acts"
	}
	fmt.Fprintf(b, "lock       %s %s\n", terminal.Line(r.Lock.Path), held)
	if r.Agent == nil {
		fmt.Fprintln(b, "agent      none has spoken since boot: this is what lies on disk, and not why")
		return
	}
	pod := "no pod"
	if r.Agent.Pod != "" {
		pod = "pod " + r.Agent.Namespace + "/" + r.Agent.Pod
	}
	fmt.Fprintf(b, "agent      %s, version %s, pid %d there, leading for %s; last change told %s ago\n", terminal.Line(pod),
		terminal.Line(r.Agent.Version), r.Agent.PID, age(now, r.Agent.Leading), age(now, *r.Written))
	fmt.Fprintf(b, "node       %s\n", terminal.Line(r.Agent.Node))
	for _, s := range []struct {
		name string
		Source
	}{{"API server", r.API}, {"kubelet", r.Kubelet}, {"runtime", r.Runtime}} {
		fmt.Fprintf(b, "%-10s %s for %s", s.name, terminal.Line(s.State), age(now, s.Since))
		if s.Detail != "" {
			fmt.Fprintf(b, ": %s", terminal.Line(s.Detail))
		}
		fmt.Fprintln(b)
	}
}

func (r Report) printLineages(b *strings.Builder, now time.Time) {
	if len(r.Lineages) == 0 {
		fmt.Fprintln(b, "\nno checkpoint, and no pod that asks for one")
		return
	}
	fmt.Fprintln(b)
	t := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "POD\tPHASE\tFOR\tREASON\tUP\tGENERATION\tSTORED\tMARKS\tLINEAGE")
	for _, l := range r.Lineages {
		stored := ""
		if l.SavedAt != nil {
			stored = age(now, *l.SavedAt) + " ago"
		}
		up, since := "", ""
		if r.Agent != nil {
			up, since = map[bool]string{true: "yes", false: "no"}[l.Up], age(now, l.Since)
		}
		cells := []string{
			strings.Trim(l.Namespace+"/"+l.Pod, "/"), l.Phase, since, l.Reason, up, l.Generation, stored,
			strings.Join(l.marks(), ","), l.Lineage,
		}
		for i := range cells {
			cells[i] = cmp.Or(terminal.Line(cells[i]), "-")
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	t.Flush() // to a strings.Builder, which never fails
}

// marks are what is out of the ordinary, in words.
func (l Lineage) marks() (marks []string) {
	for _, m := range []struct {
		is   bool
		name string
	}{
		{l.Self, "self"},
		{l.Stuck != "", "stuck"},
		{l.LoadBearing, "load-bearing"},
		{l.Failed != "", "failed:" + l.Failed},
		{l.HandedTo != "", "handed-over"},
		{l.Previous != "", "previous:" + l.Previous},
		{l.Current != nil && !*l.Current, "outdated"},
	} {
		if m.is {
			marks = append(marks, m.name)
		}
	}
	return marks
}

// age is how long ago, in the largest unit that makes sense, as kubectl has it.
func age(now, then time.Time) string {
	switch d := max(now.Sub(then), 0); {
	case then.IsZero():
		return "-"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
