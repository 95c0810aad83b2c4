//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/isolate"
)

// saveLogs copies the machine's /var/log to $LAB_ARTIFACTS, or to a directory
// of its own, and prints where and how each component's log ends.
func saveLogs(r isolate.Run) {
	logs := filepath.Join(r.Dir, "disk", Logs)
	files, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil || len(files) == 0 {
		return // it failed before anything ran
	}
	for _, f := range files {
		fmt.Fprintf(os.Stderr, "e2e: end of %s\n%s\n", filepath.Base(f), tail(f, tailLines))
	}
	target := os.Getenv("LAB_ARTIFACTS")
	if target == "" {
		target = filepath.Join(os.TempDir(), "e2e-logs-"+filepath.Base(r.Dir))
	}
	if err := os.CopyFS(target, os.DirFS(logs)); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: save the logs:", err)
	}
	fmt.Fprintln(os.Stderr, "e2e: all logs are in", target)
}
