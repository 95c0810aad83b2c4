package manifest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// life is a checkpoint to which things happen.
type life struct {
	*node
	saved  *revision // what was saved last; nil: nothing
	active bool      // whether it should be
}

// events are what the core and others do, in any order.
var events = map[string]func(*life) error{
	"save first":     func(l *life) error { return l.saveRevision(&first) },
	"save second":    func(l *life) error { return l.saveRevision(&second) },
	"save rotated":   func(l *life) error { return l.saveRevision(&rotated) },
	"save successor": func(l *life) error { return l.saveRevision(&successor) },
	"save another":   func(l *life) error { return l.saveRevision(&another) },
	"fall back": func(l *life) error { // for a moment
		if err := l.store.Withdraw(web); err != nil {
			return err
		}
		_ = l.store.Activate(web.other()) // if there is one, and it is whole
		return l.store.Withdraw(web.other())
	},
	"remove previous": func(l *life) error { return l.store.Remove(web.other()) },
	"activate":        func(l *life) error { l.active = l.saved != nil; return nil },
	"withdraw":        func(l *life) error { l.active = false; return l.store.Withdraw(web) },
	"remove": func(l *life) error {
		if l.active || l.saved == nil {
			return nil
		}
		if err := l.heal(); err != nil { // a stored manifest that a restart found damaged is not known any more
			return err
		}
		l.saved = nil
		return l.store.Remove(web)
	},
	"prune":             func(l *life) error { _ = l.store.Prune(web); return nil },
	"restart":           func(l *life) error { l.restart(); return nil },
	"lose active":       func(l *life) error { return ignoreMissing(os.Remove(l.node.active())) },
	"lose stored":       func(l *life) error { return ignoreMissing(os.Remove(l.stored())) },
	"lose inactive dir": func(l *life) error { return os.RemoveAll(l.dirs.Inactive) },
	"lose assets dir":   func(l *life) error { return os.RemoveAll(l.dirs.Assets) },
	"lose a volume":     func(l *life) error { return os.RemoveAll(l.asset("config")) },
	"lose a link":       func(l *life) error { return os.RemoveAll(l.asset("config/a.conf")) },
	"lose the content":  func(l *life) error { return os.RemoveAll(l.asset("token/..data")) },
	"damage a file":     func(l *life) error { _ = os.Truncate(l.asset("token/..data/token"), 1); return nil },
	"damage stored":     func(l *life) error { _ = os.Truncate(l.stored(), 10); return nil },
	"damage active":     func(l *life) error { _ = os.Truncate(l.node.active(), 10); return nil },
	"directory as stored": func(l *life) error {
		if l.saved == nil {
			return nil // then it is not in the place of anything of ours
		}
		_ = os.Remove(l.stored())
		_ = os.Mkdir(l.stored(), 0o755)
		return nil
	},
	"leave a temp file": func(l *life) error {
		return os.WriteFile(filepath.Join(l.dirs.Manifests, tempName()), []byte("half"), 0o600)
	},
}

func (l *life) saveRevision(r *revision) error {
	snapshot, err := l.read(*r)
	if err != nil {
		return err
	}
	l.saved = r
	return l.store.Save(l.manifestOf(r.uid, r.image), snapshot)
}

// heal does what the core asks for until it asks for nothing, as internal/checkpoint.Plan would with a living parent.
func (l *life) heal() error {
	for range 3 {
		disk, err := l.store.List()
		if err != nil {
			return err
		}
		present := disk.Checkpoints
		if len(present) > 0 && present[0].Previous {
			if err := l.store.Restore(web.other()); err != nil {
				return err
			}
			present = present[1:]
		}
		if l.isIn(diskState{present: l.saved, active: l.active}, present) {
			return nil
		}
		if l.saved == nil {
			err = l.store.Remove(web)
		} else {
			err = l.saveRevision(l.saved)
		}
		if err == nil && l.active {
			err = l.store.Activate(web)
		}
		if err != nil {
			return err
		}
	}
	disk, err := l.store.List()
	l.t.Fatalf("does not settle: %+v, %v", disk, err)
	return nil
}

// Whatever happens to a checkpoint, and in whatever order, it heals; what is others' stays as it is; and in the end it
// can be removed without a trace.
func TestLives(t *testing.T) {
	names := make([]string, 0, len(events))
	for name := range events {
		names = append(names, name)
	}
	slices.Sort(names)
	seeds := uint64(50)
	if *exhaustive {
		seeds = 1000
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 0))
		l := &life{node: newScenario(t, memoryDir(t))}
		l.restart()
		foreign := filepath.Join(l.dirs.Manifests, "kube-apiserver.yaml")
		must(t, os.WriteFile(foreign, []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: kube-apiserver}\n"), 0o644))
		before, outside := tree(t, foreign), l.outside()
		var happened []string
		for range 40 {
			name := names[random.IntN(len(names))]
			happened = append(happened, name)
			err := events[name](l)
			if err == nil && random.IntN(3) > 0 {
				err = l.heal()
			}
			if err != nil {
				t.Fatalf("seed %d: %v\n%q", seed, err, happened)
			}
		}
		must(t, l.heal())
		l.removeAll()
		l.restart()
		if diff := cmp.Diff(before, tree(t, foreign)) + cmp.Diff(outside, l.outside()); diff != "" {
			t.Fatalf("seed %d: %s\n%q", seed, diff, happened)
		}
		must(t, os.Remove(foreign))
		if l.wantNothingLeft(); t.Failed() {
			t.Fatalf("seed %d: %q", seed, happened)
		}
	}
}
