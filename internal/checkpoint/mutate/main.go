// Command mutate puts small faults into the core, one at a time, and runs its tests: each must be caught. It runs in the
// module's root, and takes the faults from internal/checkpoint/testdata/mutations.txt.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint/mutation"
)

const core = "internal/checkpoint"

// stages are the tests, the quick ones first.
var stages = [][]string{
	{"./internal/checkpoint"},
	{"-run", "TestHistories|TestEveryReachableState", "./internal/checkpoint/simulation"},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	mutations, err := mutation.Load(core)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	survived := 0
	for _, m := range mutations {
		start := time.Now()
		by, err := caught(ctx, dir, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		if by == "" {
			by = "SURVIVED"
			survived++
		}
		fmt.Printf("%-70s %s, %.1f s\n", m.Name, by, time.Since(start).Seconds())
	}
	fmt.Printf("%d faults, %d of them not caught\n", len(mutations), survived)
	if survived > 0 {
		return errors.New("a fault that no test catches: write the test")
	}
	return nil
}

// caught names the tests that fail with the mutation; empty if none does.
func caught(ctx context.Context, dir string, m mutation.Mutation) (by string, err error) {
	original, err := filepath.Abs(filepath.Join(core, m.File))
	if err != nil {
		return "", err
	}
	mutated, overlay := filepath.Join(dir, m.File), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(mutated, m.Mutated, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	for _, stage := range stages {
		cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-failfast", "-overlay", overlay}, stage...)...)
		cmd.Env = append(os.Environ(), "RUNS=1500", "DEPTH=1")
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil:
		case strings.Contains(string(out), "[build failed]"):
			return "", fmt.Errorf("it does not compile:\n%s", out)
		default:
			return "caught by " + firstFailure(string(out)), nil
		}
	}
	return "", nil
}

// firstFailure is the name of the first test that failed.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	return "a panic"
}
