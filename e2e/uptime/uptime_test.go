package uptime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestOutages: what wasn't answered is an outage, from the last answered question to the next answer.
func TestOutages(t *testing.T) {
	var down atomic.Bool
	w := Begin(func(context.Context) error {
		if down.Load() {
			return errors.New("down")
		}
		return nil
	})
	for range 2 {
		began := time.Now()
		down.Store(true)
		await(t, func() bool { return len(w.Outages()) > 0 && w.Outages().last().To.IsZero() })
		down.Store(false)
		await(t, func() bool { return !w.Outages().last().To.IsZero() })
		if o := w.Outages().last(); o.Why == nil || o.Length() <= 0 || o.To.Before(began) || o.To.After(time.Now()) {
			t.Errorf("outage %+v, begun after %v", o, began)
		}
	}
	if all := w.End(); len(all) != 2 || all.Longest() < all[0].Length() || all.total() != all[0].Length()+all[1].Length() {
		t.Errorf("outages: %v", all)
	}
}

func (all Outages) last() Outage { return all[len(all)-1] }

func await(t *testing.T, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); {
		if time.Now().After(deadline) {
			t.Fatal("waited for a minute")
		}
	}
}
