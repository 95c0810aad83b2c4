package simulation

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// TestHistories plays many histories, each of a seed of its own. SEED and RUNS choose others, as `make simulate` does.
func TestHistories(t *testing.T) {
	first, runs, steps := setting(t, "SEED", 0), setting(t, "RUNS", histories), setting(t, "STEPS", 300)
	debug.SetGCPercent(400) // there is little that lives, and much that is made
	var next atomic.Uint64
	var failed atomic.Bool
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < runs && !failed.Load(); i = next.Add(1) - 1 {
				run := Run{Seed: first + i, Steps: int(steps)}
				if violation, step := run.Play(&tale{mute: true}); violation != "" && !failed.Swap(true) {
					short := run.Shorten()
					t.Errorf("seed %d, step %d: %s\nplay it again: make simulate SEED=%d RUNS=1\n%s", run.Seed, step, violation, run.Seed, short.Story())
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d histories of %d steps, from seed %d", runs, steps, first)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no number", name, text)
	}
	return n
}
