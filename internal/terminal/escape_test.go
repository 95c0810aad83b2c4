package terminal

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestWhatATerminalWouldObeyIsShown(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"plain", "web-x7k2p: größer, 日本", "web-x7k2p: größer, 日本"},
		{"colour", "\x1b[31mred", `\x1b[31mred`},
		{"title of the window", "\x1b]0;x\x07", `\x1b]0;x\x07`},
		{"8-bit control sequence", "\u009b31m", `\u009b31m`},
		{"line break", "a\nb\r\tc", `a\nb\x0d\tc`},
		{"direction of writing", "a\u202eb", `a\u202eb`},
		{"invalid", "a\xffb\xc3", `a\xffb\xc3`},
		{"replacement character", "a\ufffdb", "a\ufffdb"},
		{"delete", "a\x7f", `a\x7f`},
	} {
		if got := Line(test.in); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if got := Lines("a\nb\x1b"); got != "a\nb\\x1b" {
		t.Errorf("got %q", got)
	}
}

func FuzzLineIsPrintable(f *testing.F) {
	f.Add("\x1b[31m\xff\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		line := Line(text)
		if !utf8.ValidString(line) {
			t.Errorf("%q is no UTF-8", line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) {
				t.Errorf("%q holds %q", line, r)
			}
		}
	})
}
