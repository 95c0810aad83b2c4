//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/isolate"
)

// saveLogs copies each machine's /var/log to a directory of its name in
// $LAB_ARTIFACTS, or in one of the run's own, and prints where and how each
// component's log ends.
func saveLogs(r isolate.Run) {
	target := os.Getenv("LAB_ARTIFACTS")
	if target == "" {
		target = filepath.Join(os.TempDir(), "e2e-logs-"+filepath.Base(r.Dir))
	}
	saved := false
	for number := 1; number <= isolate.Machines; number++ {
		m := machine{r, number}
		logs := m.own("disk", Logs)
		files, err := filepath.Glob(filepath.Join(logs, "*.log"))
		if err != nil || len(files) == 0 {
			continue // it failed before anything ran
		}
		for _, f := range files {
			fmt.Fprintf(os.Stderr, "e2e: end of %s of %s\n%s\n", filepath.Base(f), m.name(), tail(f, tailLines))
		}
		if err := os.CopyFS(filepath.Join(target, m.name()), os.DirFS(logs)); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: save the logs:", err)
		}
		saved = true
	}
	if saved {
		fmt.Fprintln(os.Stderr, "e2e: all logs are in", target)
	}
}
