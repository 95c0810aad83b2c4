package lab

import (
	"fmt"
	"os"
	"strings"
)

// notRun says that the end-to-end tests didn't run, and exits: with 0, for a
// developer without root or Linux, and with 1 in CI, where it's a failure.
func notRun(reason error) {
	line := fmt.Sprintf("e2e: NOT RUN: %v\n", reason)
	fmt.Fprint(os.Stderr, line)
	if os.Getenv("CI") == "true" {
		os.Exit(1)
	}
	tellGoTest(line)
	os.Exit(0)
}

// tellGoTest writes to the standard error of `go test`, which swallows what a
// passing package prints.
func tellGoTest(line string) {
	parent := fmt.Sprintf("/proc/%d/", os.Getppid())
	name, err := os.ReadFile(parent + "comm")
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return
	}
	f, err := os.OpenFile(parent+"fd/2", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteString(line)
}
