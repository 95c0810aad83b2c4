// Package cleanup removes from a node what the agent keeps on it, whether the agent runs or not.
//
// # Guarantees
//
//   - Nothing is removed while a copy of the agent acts: it gives its lock up, and it takes it again when the cleanup has
//     ended, however that ends.
//   - What is before the kubelet goes first, and what a pod mounts once the pod has stopped. The agent's own manifest goes
//     last, because the kubelet then ends the very container in which the cleanup may run.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

const (
	lockPatience = 30 * time.Second // until the agent has given the lock up
	look         = 200 * time.Millisecond
)

// Job is what to remove, and where.
type Job struct {
	Dirs     manifest.Dirs
	LockFile string
	Runtime  string        // endpoint; empty: it is not known what runs
	Patience time.Duration // for pods to stop
	// SelfNamespace and SelfName are of the pod in which this runs; empty outside of one.
	SelfNamespace, SelfName string

	Progress func(string) // a line for a person
}

// Locked calls do while no copy of the agent acts.
func (j *Job) Locked(ctx context.Context, do func(context.Context) error) error {
	release, err := announce(j.LockFile)
	if err != nil {
		return err
	}
	defer release()
	lock := flock.New(j.LockFile, flock.SetPermissions(0o600))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, lockPatience)
	defer stop()
	if held, err := lock.TryLockContext(waiting, look); !held {
		return fmt.Errorf("the lock %s is held by something that does not give it up: a checkpointer of an earlier version, or bootkube's; delete its DaemonSet first (%w)", j.LockFile, err)
	}
	defer func() { _ = lock.Unlock() }()
	return do(ctx)
}

// Remove removes every checkpoint, and what is ours beside them.
func (j *Job) Remove(ctx context.Context) error {
	store, err := manifest.OpenStore(j.Dirs)
	if err != nil {
		return err
	}
	disk, err := store.List()
	if err != nil {
		return err
	}
	own, others := j.split(disk.Checkpoints)
	for _, c := range others {
		if err := store.Withdraw(manifest.KeyOf(c)); err != nil {
			return err
		}
	}
	j.awaitStop(ctx, others)
	for _, c := range others {
		if err := store.Remove(manifest.KeyOf(c)); err != nil {
			return err
		}
	}
	for _, c := range own {
		if err := errors.Join(store.Withdraw(manifest.KeyOf(c)), store.Remove(manifest.KeyOf(c))); err != nil {
			return err
		}
	}
	err = store.Leave()
	if gone := os.Remove(status.File(j.LockFile)); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// RemovePredecessors removes what the checkpointer of bootkube left.
func (j *Job) RemovePredecessors(context.Context) error {
	store, err := manifest.OpenStore(j.Dirs)
	if err != nil {
		return err
	}
	err = store.RemovePredecessors()
	if disk, listErr := store.List(); listErr == nil && len(disk.Checkpoints) == 0 {
		err = errors.Join(err, store.Leave())
	}
	return err
}

// split puts the checkpoints of the agent itself, as far as it is known which those are, apart from the others.
func (j *Job) split(all []checkpoint.Checkpoint) (own, others []checkpoint.Checkpoint) {
	self := checkpoint.Lineage("")
	for _, c := range all {
		if c.Namespace == j.SelfNamespace && c.Name == j.SelfName {
			self = c.Lineage
		}
	}
	for _, c := range all {
		if c.Lineage == self {
			own = append(own, c)
		} else {
			others = append(others, c)
		}
	}
	return own, others
}

// awaitStop waits until what was withdrawn has stopped, for as long as there is patience: a pod that the kubelet can't be
// made to stop keeps what it has open of its files. Until it has seen the API server once, a kubelet stops none.
func (j *Job) awaitStop(ctx context.Context, withdrawn []checkpoint.Checkpoint) {
	ctx, cancel := context.WithTimeout(ctx, j.Patience)
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for last := ""; j.Runtime != ""; {
		found, err := kubelet.Inspect(ctx, j.Runtime, nil)
		running := strings.Join(stillRunning(found.Sandboxes, withdrawn), ", ")
		switch {
		case ctx.Err() != nil:
			j.Progress("not stopped in time: " + last + "; the kubelet ends them once it has seen the API server")
			return
		case err != nil:
			j.Progress("the container runtime does not tell what still runs: " + err.Error())
			return
		case running == "":
			return
		case running != last:
			j.Progress("waiting for pods to stop: " + running)
			last = running
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func stillRunning(sandboxes []checkpoint.Sandbox, withdrawn []checkpoint.Checkpoint) (names []string) {
	for _, c := range withdrawn {
		for _, s := range sandboxes {
			if c.Active != checkpoint.Missing && s.Ready && s.Of(&c) {
				names = append(names, c.Namespace+"/"+c.Name)
			}
		}
	}
	return names
}
