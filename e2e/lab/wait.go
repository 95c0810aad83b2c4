//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	pollEvery = 50 * time.Millisecond
	// waitAtMost bounds waits whose context has no deadline.
	waitAtMost = 2 * time.Minute
	tailLines  = 15
)

// giveUp makes Wait return at once: waiting longer won't help.
type giveUp struct{ error }

// Wait calls check every 50 ms until it returns nil. When ctx ends first (after
// two minutes if it has no deadline) the error says what was waited for, what
// check said last, and how the components' logs end.
func Wait(ctx context.Context, what string, check func(context.Context) error, logs ...*Component) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, waitAtMost)
		defer cancel()
	}
	started := time.Now()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// An attempt that the deadline cut short says less than the one before.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		var final giveUp
		if ctx.Err() != nil || errors.As(err, &final) {
			return fmt.Errorf("waited %.1f s for %s: %w%s", time.Since(started).Seconds(), what, last, tails(logs))
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func tails(components []*Component) string {
	var b strings.Builder
	for _, c := range components {
		fmt.Fprintf(&b, "\n--- end of %s\n%s", c.Log(), tail(c.Log(), tailLines))
	}
	return b.String()
}

// tail is the last lines of a file, or why it can't be read.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
