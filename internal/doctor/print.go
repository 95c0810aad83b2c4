package doctor

import (
	"fmt"
	"io"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/terminal"
)

// Colours of the severities, and what ends them.
const (
	red, yellow, green, plain = "\x1b[31m", "\x1b[33m", "\x1b[32m", "\x1b[0m"
)

// Print writes the findings for a person.
func Print(w io.Writer, findings []Finding, checkpoints int, colour bool) error {
	paint := func(with, text string) string {
		if !colour {
			return text
		}
		return with + text + plain
	}
	var b strings.Builder
	for _, f := range findings {
		with := yellow
		if f.Severity == Error {
			with = red
		}
		fmt.Fprintf(&b, "%s %s: %s\n  %s\n  -> %s\n", paint(with, string(f.Severity)), f.Name, terminal.Line(f.What), f.Means, f.Remedy)
	}
	if Survives(findings) {
		fmt.Fprintf(&b, "%s: this node would survive a power cut now, with %d checkpoints\n", paint(green, "yes"), checkpoints)
	} else {
		fmt.Fprintf(&b, "%s: this node would not survive a power cut now as it should\n", paint(red, "no"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
