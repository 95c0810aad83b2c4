package watch

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestALoopThatTurnsTakesAPing(t *testing.T) {
	onNode(t, func(n *node) {
		pings := make(Pings)
		n.boot(func(c *Config) { c.Pings = pings })
		plans := n.since()
		if err := pings.Ping(n.t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if planned := plans(func(l line) bool { return l.Message == "planned" }); len(planned) > 0 {
			t.Errorf("a ping made the loop plan %d times", len(planned))
		}
	})
}

func TestALoopThatHangsTakesNoPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := make(Pings).Ping(ctx); err == nil {
			t.Error("nobody took it, and that is no error")
		}
	})
}
