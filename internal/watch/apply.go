package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// apply does the actions in their order, and says whether it wrote to the disk. An action that fails is held back, and no
// other one for it: the store itself sees to it that nothing comes before what it rests on, and what does not rest on what
// failed, such as an activation on a stored file that can't be repaired, must not wait for it.
func (l *Loop) apply(ctx context.Context, actions []checkpoint.Action) (written bool) {
	for _, action := range actions {
		if l.retries.blocked(nameOf(action)) {
			continue
		}
		start := time.Now()
		onDisk, err := l.do(ctx, action)
		written = written || onDisk
		switch {
		case err != nil:
			wait, news := l.retries.failed(nameOf(action))
			told := manifest.IsProblem(err)
			describe(l.Log.WithLevel(levelOf(zerolog.ErrorLevel, news && !told)), action).Err(err).Dur("retry_in", wait).Msg("action failed")
		case onDisk:
			lasted, news := l.retries.succeeded(nameOf(action))
			if news {
				describe(l.Log.Warn(), action).Msg("somebody undoes this: it is done again and again, ever more slowly")
			}
			describe(l.Log.WithLevel(levelOf(zerolog.InfoLevel, lasted)), action).Float64("took_ms", milliseconds(time.Since(start))).Msg("action done")
			l.tellSaved(action)
		}
	}
	return written
}

// nameOf is what an action is held back by that fails, or that does not last because somebody else undoes it.
func nameOf(a checkpoint.Action) string {
	if a.Kind == checkpoint.Mark {
		return a.Kind.String() + " of " + string(a.Lineage)
	}
	return a.Kind.String() + " of " + keyOf(a).FileName()
}

func keyOf(a checkpoint.Action) manifest.Key {
	return manifest.Key{Namespace: a.Namespace, Name: a.Name, Previous: a.Previous}
}

// levelOf is the level for what is news, and debug for what was said already.
func levelOf(level zerolog.Level, news bool) zerolog.Level {
	if news {
		return level
	}
	return zerolog.DebugLevel
}

// do carries out one action, and says whether it wrote to the disk. What asks somebody else goes on in the background.
func (l *Loop) do(ctx context.Context, a checkpoint.Action) (onDisk bool, err error) {
	switch a.Kind {
	case checkpoint.Mark:
		return true, l.Store.Mark(a.Lineage, a.Marks)
	case checkpoint.Save:
		return true, l.save(a)
	case checkpoint.Restore:
		return true, l.Store.Restore(keyOf(a))
	case checkpoint.Activate:
		return true, l.Store.Activate(keyOf(a))
	case checkpoint.Retry:
		return true, l.Store.Retry(keyOf(a))
	case checkpoint.Withdraw:
		return true, l.Store.Withdraw(keyOf(a))
	case checkpoint.Remove:
		if err := l.Store.Remove(keyOf(a)); err != nil || a.Lineage != l.Policy.Self || a.Reason != checkpoint.ReasonRemovalConfirmed {
			return true, err
		}
		l.done = "no longer wanted on this node: every checkpoint is removed, and our own at last"
		return true, errors.Join(l.Store.Leave(), l.reporter.leave())
	case checkpoint.Prune:
		return true, l.Store.Prune(keyOf(a))
	case checkpoint.Confirm:
		l.confirm(ctx, a.Lineage)
		return false, nil
	case checkpoint.StopSandbox:
		l.inRuntime(ctx, a, l.Runtime.StopSandbox)
		return false, nil
	case checkpoint.Kick:
		l.inRuntime(ctx, a, l.Runtime.Kick)
		return false, nil
	case checkpoint.StepDown:
		l.done = "a newer revision of this agent stands by: it leads from now on"
		return false, nil
	default:
		return false, fmt.Errorf("unknown action %v", a.Kind)
	}
}

// save renders the parent anew, so that what is written is what it is now, and is known to be.
func (l *Loop) save(a checkpoint.Action) error {
	pod, r := l.pods[a.UID], l.renders[a.UID]
	if pod == nil || r == nil {
		return errors.New("the parent is gone meanwhile")
	}
	result, snapshot, err := l.convert(pod, r)
	if err != nil {
		return err
	}
	r.rendered(result, snapshot)
	return l.Store.Save(result.Manifest, snapshot)
}

// inRuntime does to a sandbox what the action asks for, in the background.
func (l *Loop) inRuntime(ctx context.Context, a checkpoint.Action, do func(ctx context.Context, id string) error) {
	l.ask(ctx, a.Kind.String()+" of sandbox "+a.Sandbox, func() (func() error, error) {
		err := do(ctx, a.Sandbox)
		return func() error {
			describe(l.Log.Info(), a).Str("sandbox", a.Sandbox).Msg("action done")
			return nil
		}, err
	})
}

func describe(e *zerolog.Event, a checkpoint.Action) *zerolog.Event {
	e = e.Stringer("action", a.Kind).Str("lineage", string(a.Lineage)).Str("pod", a.Namespace+"/"+a.Name)
	if a.UID != "" {
		e = e.Str("uid", string(a.UID))
	}
	return e.Str("reason", string(a.Reason))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
