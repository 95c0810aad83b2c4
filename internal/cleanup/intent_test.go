package cleanup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

func TestACleanupIsIntendedForAsLongAsItLives(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	if Intended(lock) {
		t.Error("intended by nobody")
	}
	if err := Await(t.Context(), lock); err != nil {
		t.Error(err)
	}
	release, err := announce(lock)
	if err != nil {
		t.Fatal(err)
	}
	if !Intended(lock) {
		t.Error("not seen")
	}
	if _, err := announce(lock); err == nil {
		t.Error("two at once")
	}
	waited := make(chan error, 1)
	go func() { waited <- Await(t.Context(), lock) }()
	release()
	if err := <-waited; err != nil || Intended(lock) {
		t.Errorf("after it: %v, intended: %v", err, Intended(lock))
	}
	if _, err := os.Stat(IntentFile(lock)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

// TestAFileThatAKilledCleanupLeftStopsNobody: only its lock counts.
func TestAFileThatAKilledCleanupLeftStopsNobody(t *testing.T) {
	lock := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(IntentFile(lock), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if Intended(lock) {
		t.Error("a dead cleanup is intended")
	}
	if err := Await(t.Context(), lock); err != nil {
		t.Error(err)
	}
}

func TestNothingIsDoneWithoutTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := flock.New(path)
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // or it would wait for its whole patience
	job := Job{LockFile: path}
	err := job.Locked(ctx, func(context.Context) error { t.Error("it was done"); return nil })
	if err == nil || Intended(path) {
		t.Errorf("%v, still intended: %v", err, Intended(path))
	}
}
