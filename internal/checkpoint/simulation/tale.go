package simulation

import (
	"fmt"
	"strings"
	"unicode"
)

// tale writes down what happens, in words. Without one, nothing is.
type tale struct {
	lines []string
	mute  bool
}

func (w *World) tell(format string, args ...any) {
	if w.tale == nil || w.tale.mute {
		return
	}
	line := fmt.Sprintf(format, args...)
	for i := max(0, len(w.tale.lines)-4); i < len(w.tale.lines); i++ {
		if strings.HasSuffix(w.tale.lines[i], line) {
			w.tale.lines[i] = "      ...  " + line
			return
		}
	}
	w.tale.lines = append(w.tale.lines, fmt.Sprintf("%8.1fs  %s", w.now.Seconds(), line))
}

// Shorten leaves out of a history that goes wrong every fault without which it goes wrong as well.
func (r Run) Shorten() Run {
	violation, last := r.Play(&tale{mute: true})
	short := Run{Seed: r.Seed, Steps: min(r.Steps, last+1), Skip: make(map[int]bool)}
	for size := 64; size > 0; size /= 2 {
		for from := 0; from < short.Steps; from += size {
			try := Run{Seed: r.Seed, Steps: short.Steps, Skip: make(map[int]bool)}
			for step := range short.Skip {
				try.Skip[step] = true
			}
			for step := from; step < from+size; step++ {
				try.Skip[step] = true
			}
			if found, _ := try.Play(&tale{mute: true}); kind(found) == kind(violation) {
				short = try
			}
		}
	}
	return short
}

// kind is a violation without the numbers in it.
func kind(violation string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, violation)
}

// Story is what happened, in words.
func (r Run) Story() string {
	t := new(tale)
	r.Play(t)
	return strings.Join(t.lines, "\n")
}
