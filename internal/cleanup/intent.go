package cleanup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// IntentFile is locked by a cleanup for as long as it lives: until then, no copy of the agent acts. The kernel gives that
// lock back however the cleanup ends, so that a node can't stay unprotected.
func IntentFile(lock string) string { return lock + ".cleanup" }

// Intended says whether a cleanup wants the agent's lock, or has it.
func Intended(lock string) bool {
	held, err := status.Held(IntentFile(lock))
	return held && err == nil
}

// Await waits until no cleanup wants the agent's lock, or ctx ends.
func Await(ctx context.Context, lock string) error {
	file, err := os.Open(IntentFile(lock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	free := make(chan error, 1)
	go func() {
		defer file.Close()
		free <- syscall.Flock(int(file.Fd()), syscall.LOCK_SH)
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-free:
		return err
	}
}

// announce makes the agents give the lock up. The returned function takes that back.
func announce(lock string) (func(), error) {
	path := IntentFile(lock)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("announce the cleanup to the agent; the directory of the lock must exist, or --lock-file name another: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another cleanup is under way"), file.Close())
	}
	// The agent looks at the lock when the file changes: now it finds it locked.
	if _, err := file.WriteString("cleanup\n"); err != nil {
		return nil, errors.Join(err, os.Remove(path), file.Close())
	}
	return func() { _ = os.Remove(path); _ = file.Close() }, nil
}
