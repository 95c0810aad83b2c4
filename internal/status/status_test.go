package status

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.status.json")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	now := time.Now().UTC().Round(0)
	want := Report{Format: Format, Agent: &Agent{Version: "1", Leading: now}, Written: &now, Lineages: []Lineage{{Pod: "p", Since: now}}}
	for range 2 {
		if err := want.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, differs (-want +got):\n%s", err, diff)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("more than the report is left: %v, %v", entries, err)
	}
}

func TestTheFileLiesBesideTheLock(t *testing.T) {
	if got := File("/run/lock/pod-checkpointer.lock"); got != "/run/lock/pod-checkpointer.status.json" {
		t.Error(got)
	}
	if got := File("/run/x/mine"); got != "/run/x/mine.status.json" {
		t.Error(got)
	}
}

func TestALockIsSeenAndLeftAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	want := func(want bool) {
		t.Helper()
		if held, err := Held(path); err != nil || held != want {
			t.Errorf("held: %v, %v, want %v", held, err, want)
		}
	}
	want(false)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("looking made a file")
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	want(false)
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	want(true)
	want(true)
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	want(false)
}

func TestTheDiskAloneTellsPhaseGenerationAndMarks(t *testing.T) {
	at := time.Now()
	disk := checkpoint.Disk{Known: true, Marks: map[checkpoint.Lineage]checkpoint.Marks{"b": {Stuck: "u", LoadBearing: true}}, Checkpoints: []checkpoint.Checkpoint{
		{Lineage: "b", Namespace: "n", Name: "b-new", Manifest: strings.Repeat("a", 64), SavedAt: at, Active: checkpoint.Intact},
		{Lineage: "b", Namespace: "n", Name: "b-new", Manifest: strings.Repeat("b", 64), SavedAt: at.Add(time.Hour), Previous: true},
		{Lineage: "a", Namespace: "n", Name: "a-1", Manifest: "short", Handover: checkpoint.HandoverCreated, Ports: []checkpoint.Port{"80/TCP"}},
	}}
	want := []Lineage{
		{Lineage: "a", Namespace: "n", Pod: "a-1", Phase: "stored", Generation: "short", Handover: "created", Ports: []string{"80/TCP"}},
		{Lineage: "b", Namespace: "n", Pod: "b-new", Phase: "active", Generation: "aaaaaaaaaaaa", Previous: "bbbbbbbbbbbb", SavedAt: &at, Handover: "ready", Stuck: "u", LoadBearing: true},
	}
	if diff := cmp.Diff(want, FromDisk(disk)); diff != "" {
		t.Error(diff)
	}
}
