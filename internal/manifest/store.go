package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Dirs are the absolute paths of the directories in which checkpoints live.
type Dirs struct {
	Manifests string // the kubelet's static pod directory
	Inactive  string // the stored manifests
	Assets    string // what the manifests mount
}

// Store keeps checkpoints on disk: at any instant, whatever was cut, each of them is the whole old one or the whole new
// one. It remembers what it wrote, and so tells what others did to it. It is for one goroutine at a time, of the one
// process that holds the lock.
type Store struct {
	dirs    Dirs
	records map[string]*record                      // by file name
	foreign map[string]foreign                      // manifests in the static pod directory that are not ours, by file name
	marks   map[checkpoint.Lineage]checkpoint.Marks // as last read
	strange map[string]strange                      // files that were found to be no checkpoint, by directory

	readOnly bool // see ReadStore
}

// strange are files of one directory that look like ours by name only, as they were when they were read; the zero stamp:
// they must be read again.
type strange map[string]stamp

// OpenStore makes the directories that are ours and finishes what a crash interrupted.
func OpenStore(dirs Dirs) (*Store, error) {
	s := newStore(dirs)
	for _, in := range []func(func(*os.Root) error) error{s.inManifests, s.inInactive, s.inAssets} {
		if err := in(func(*os.Root) error { return nil }); err != nil {
			return nil, err
		}
	}
	// What can't be cleaned does no harm: a full or read-only disk must not keep the agent from its work.
	sweepRoot := func(dir *os.Root) error { return sweep(dir, ".") }
	_ = errors.Join(s.inManifests(sweepRoot), s.inInactive(sweepRoot), s.inAssets(s.replayAll))
	if err := errors.Join(s.inInactive(s.adopt), s.inManifests(s.adopt)); err != nil {
		return nil, err
	}
	_ = s.inAssets(s.recoverAssets)
	return s, nil
}

func newStore(dirs Dirs) *Store {
	return &Store{
		dirs:    dirs,
		records: make(map[string]*record),
		foreign: make(map[string]foreign),
		strange: make(map[string]strange),
	}
}

// List reads the directories anew and compares them with what was last written. A stored manifest that can't be read is
// Altered, an asset that can't be read is missing in the digest; only the static pod directory must be readable.
func (s *Store) List() (checkpoint.Disk, error) {
	_ = s.inInactive(s.adopt)
	err := s.inManifests(func(dir *os.Root) error {
		err := s.adopt(dir)
		for _, r := range s.records {
			err = errors.Join(err, r.lookActive(dir))
		}
		return errors.Join(err, s.lookForeign(dir))
	})
	if err != nil {
		return checkpoint.Disk{}, err
	}
	unreadable := s.inInactive(func(dir *os.Root) error {
		if known, err := readState(dir); err == nil { // else what is known of them stays
			s.marks = known.Marks
		}
		for _, r := range s.records {
			if err := r.lookStored(dir); err != nil {
				return err
			}
		}
		return nil
	})
	lost := s.inAssets(func(dir *os.Root) error {
		for _, r := range s.records {
			r.lookAssets(dir)
		}
		return nil
	})
	disk := checkpoint.Disk{Known: true, Marks: s.marks}
	for _, r := range s.records {
		if unreadable != nil {
			r.stored, r.checkpoint.Stored, r.checkpoint.SavedAt = sight{}, checkpoint.Altered, time.Time{}
		}
		if lost != nil {
			r.loseAssets()
		}
		disk.Checkpoints = append(disk.Checkpoints, r.checkpoint)
	}
	slices.SortFunc(disk.Checkpoints, byAge)
	return disk, nil
}

// byAge orders checkpoints by their parents' names, and those of one name by generation, the one before first.
func byAge(a, b checkpoint.Checkpoint) int {
	order := cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	switch {
	case order != 0 || a.Previous == b.Previous:
		return order
	case a.Previous:
		return -1
	default:
		return 1
	}
}

// adopt remembers the checkpoints in a directory that are not remembered yet. The stored manifest counts; a good active
// one stands in for it.
func (s *Store) adopt(dir *os.Root) error {
	names, err := readNames(dir, ".")
	seen := make(strange)
	for _, name := range names {
		if s.records[name] != nil || !mayBeOurs(name) {
			continue
		}
		info, err := dir.Lstat(name)
		if err != nil {
			continue
		}
		now := stampOf(info)
		if s.strange[dir.Name()][name] == now {
			seen[name] = now
			continue
		}
		if s.adoptFile(dir, name) {
			continue
		}
		seen[name] = stamp{}
		if now.settled(time.Now()) {
			seen[name] = now
		}
	}
	s.strange[dir.Name()] = seen
	return err
}

func (s *Store) adoptFile(dir *os.Root, name string) bool {
	data, err := readFile(dir, name)
	if err != nil {
		return false
	}
	r, err := parse(data, isPrevious(name), s.dirs.Assets)
	if err != nil || r.name() != name {
		return false
	}
	s.records[name] = r
	return true
}

// inManifests calls do with the static pod directory. Like the others it is opened for each operation, because it may be
// removed, made again or mounted over, and a handle would stay with the old one. It is never made: a kubelet that lacks
// it reads another.
func (s *Store) inManifests(do func(*os.Root) error) error {
	root, err := os.OpenRoot(s.dirs.Manifests)
	if err != nil {
		return fmt.Errorf("the kubelet's static pod directory (its staticPodPath, our --manifests-dir): %w", err)
	}
	return explain(s.dirs.Manifests, errors.Join(do(root), root.Close()))
}

func (s *Store) inInactive(do func(*os.Root) error) error {
	root, err := s.openOurs(s.dirs.Inactive)
	if root == nil && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the directory of stored checkpoints (--inactive-dir): %w", err)
	}
	return explain(s.dirs.Inactive, errors.Join(do(root), root.Close()))
}

func (s *Store) inAssets(do func(*os.Root) error) error {
	root, err := s.openOurs(s.dirs.Assets)
	if root == nil && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the directory of the checkpoints' assets (--assets-dir): %w", err)
	}
	return explain(s.dirs.Assets, errors.Join(do(root), root.Close()))
}
