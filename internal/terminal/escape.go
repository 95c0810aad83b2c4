// Package terminal makes text from a cluster fit for a person's terminal.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is text in one line: what could move the cursor, change colours or pretend to be something else (control
// characters, escape sequences, changes of the direction of writing, invalid UTF-8) is shown instead of sent.
func Line(text string) string { return escape(text, "") }

// Lines is as Line, and keeps line breaks.
func Lines(text string) string { return escape(text, "\n") }

func escape(text, keep string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
