//go:build linux

package site

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// LogLine is a line of the checkpointer's log. What is not JSON has only Time and Text.
type LogLine struct {
	Time    time.Time `json:"-"` // when the runtime wrote it
	Level   string    `json:"level"`
	Message string    `json:"message"`
	Pod     string    `json:"pod"`
	To      string    `json:"to"`
	Reason  string    `json:"reason"`
	Action  string    `json:"action"`
	Text    string    `json:"-"`
}

// Log is what every copy of the checkpointer has logged since, in order of time.
func Log(since time.Time) (LogLines, error) { return LogIn(lab.Logs, since) }

// LogIn is Log of another machine, whose lab.Logs is the directory.
func LogIn(logs string, since time.Time) (LogLines, error) {
	files, err := filepath.Glob(logs + "/pods/" + Namespace + "_pod-checkpointer-*/checkpointer/*.log")
	if err != nil {
		return nil, err
	}
	var lines LogLines
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
			// The CRI's log format: time, stream, tag, text.
			fields := strings.SplitN(scanner.Text(), " ", 4)
			written, err := time.Parse(time.RFC3339Nano, fields[0])
			if err != nil || len(fields) < 4 || written.Before(since) {
				continue
			}
			line := LogLine{Time: written, Text: written.Format("15:04:05.000 ") + fields[3]}
			_ = json.Unmarshal([]byte(fields[3]), &line)
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b LogLine) int { return a.Time.Compare(b.Time) })
	return lines, nil
}

// LogLines are lines in order of time.
type LogLines []LogLine

func (l LogLines) String() string {
	var b strings.Builder
	for _, line := range l {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}
