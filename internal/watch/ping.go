package watch

import (
	"context"
	"errors"
)

// Pings shows that a loop is alive: it takes each one.
type Pings chan struct{}

// Ping returns nil once the loop has taken it, and an error if ctx ends before.
func (p Pings) Ping(ctx context.Context) error {
	select {
	case p <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.New("the loop has not turned: it hangs, or a disk or a file system does that it writes to")
	}
}
