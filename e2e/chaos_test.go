//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestChaos breaks a node in random ways that overlap, while a checker looks on from outside. CHAOS_MINUTES says for how
// long, CHAOS_SEED repeats a story; the order of faults is the same then, the node's reactions need not be.
func TestChaos(t *testing.T) {
	minutes, seed := 2.0, uint64(time.Now().UnixNano())
	if given, err := strconv.ParseFloat(os.Getenv("CHAOS_MINUTES"), 64); err == nil {
		minutes = given
	}
	if given, err := strconv.ParseUint(os.Getenv("CHAOS_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("CHAOS_SEED=%d CHAOS_MINUTES=%v", seed, minutes)
	length := time.Duration(minutes * float64(time.Minute))
	ctx, cancel := context.WithTimeout(context.Background(), length+20*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("a static pod of somebody else's is there", writeForeign())
	c := &chaos{testSite: s, random: rand.New(rand.NewPCG(seed, 0)), faulty: make(map[string]*fault), calm: make(map[string]time.Time)}
	looking, stop := context.WithCancel(ctx)
	var checker sync.WaitGroup
	checker.Go(func() { c.check(looking) })
	c.rage(ctx, time.Now().Add(length))
	c.heal(ctx)
	stop()
	checker.Wait()
	if t.Failed() {
		return
	}
	c.settles(ctx)
	t.Logf("%d faults, %d power cuts, %d looks of the checker", c.faults, c.cuts, c.looks)
}

// chaos is what is broken now.
type chaos struct {
	*testSite
	random *rand.Rand

	mu     sync.Mutex
	faulty map[string]*fault    // by what it is done to
	calm   map[string]time.Time // since when something is whole again

	faults, cuts, looks int
}

// fault is one way of breaking something.
type fault struct {
	name   string
	target string
	begin  func(context.Context) error
	end    func(context.Context) error // nil: it is over when begin returns
	alone  bool                        // only while nothing else is broken
	needs  string                      // the target that must be whole to begin it, and to end it
}

// rage begins and ends faults in random order, two at a time at most.
func (c *chaos) rage(ctx context.Context, end time.Time) {
	all := c.allFaults()
	for time.Now().Before(end) && !c.t.Failed() {
		switch n := len(c.faulty); {
		case n > 0 && c.random.IntN(3) < n:
			targets := slices.Sorted(maps.Keys(c.faulty))
			c.endFault(ctx, c.faulty[targets[c.random.IntN(n)]])
		case c.random.IntN(8) == 0:
			c.cutPower(ctx)
		default:
			f := all[c.random.IntN(len(all))]
			if c.faulty[f.target] == nil && c.faulty[f.needs] == nil && (!f.alone || n == 0) {
				c.beginFault(ctx, f)
			}
		}
		c.breathe(ctx)
	}
}

// breathe lets the node react for a random while, so that the next fault meets it at any point of it.
func (c *chaos) breathe(ctx context.Context) {
	timer := time.NewTimer(time.Duration(c.random.IntN(8000)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (c *chaos) beginFault(ctx context.Context, f *fault) {
	c.mu.Lock()
	c.faulty[f.target] = f
	c.mu.Unlock()
	c.faults++
	c.step(f.name, f.begin(ctx))
	if f.end == nil {
		c.whole(f.target)
	}
}

func (c *chaos) endFault(ctx context.Context, f *fault) {
	if first := c.faulty[f.needs]; first != nil {
		c.endFault(ctx, first)
	}
	c.step(f.name+": over", f.end(ctx))
	c.whole(f.target)
}

func (c *chaos) whole(target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.faulty, target)
	c.calm[target] = time.Now()
}

// cutPower ends what is broken on the node by a worse thing.
func (c *chaos) cutPower(ctx context.Context) {
	c.mu.Lock()
	c.faulty["power"] = &fault{}
	c.mu.Unlock()
	c.cuts++
	c.step("power is cut", c.PowerCut(ctx))
	for _, target := range []string{"kubelet", "containerd", "agent"} {
		c.whole(target)
	}
	c.breathe(ctx)
	c.step("power is on", c.PowerOn(ctx))
	c.whole("power")
}

func (c *chaos) heal(ctx context.Context) {
	for len(c.faulty) > 0 {
		c.endFault(ctx, c.faulty[slices.Sorted(maps.Keys(c.faulty))[0]])
	}
}

// calmFor says for how long all of the targets have been whole; zero if one is not.
func (c *chaos) calmFor(targets ...string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	least := time.Hour
	for _, target := range append(targets, "power") {
		if c.faulty[target] != nil {
			return 0
		}
		if since, ok := c.calm[target]; ok {
			least = min(least, time.Since(since))
		}
	}
	return least
}

// settles: with the faults gone, all that should run runs once, as itself, and every checkpoint stands by.
func (c *chaos) settles(ctx context.Context) {
	c.step("the node is Ready", c.WaitReady(ctx))
	for _, name := range []string{"web", "gateway", "pod-checkpointer"} {
		c.step(name+" is ready", c.WaitDaemonSet(ctx, site.Namespace, name))
	}
	c.eventually(ctx, "one copy of each runs, and only the checkpointer's checkpoint is active", func() error {
		copies, err := c.copies(ctx)
		for _, of := range []string{"web", "gateway"} {
			if len(copies[of]) != 1 {
				err = errors.Join(err, fmt.Errorf("%s runs as %v", of, copies[of]))
			}
		}
		active, globErr := c.manifests(lab.Manifests)
		if len(active["web"])+len(active["gateway"]) > 0 || len(active["pod-checkpointer"]) != 1 {
			err = errors.Join(err, globErr, fmt.Errorf("active: %v", active))
		}
		return errors.Join(err, c.leftovers())
	})
}
