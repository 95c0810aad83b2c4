//go:build linux

package isolate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// removeWithin bounds the wait for the kernel to end the run's processes, which
// keep its cgroups busy.
const removeWithin = 20 * time.Second

// create sweeps, then makes the run's directory and cgroups. A run holds a lock
// on each of them; the kernel drops it with the last process that has the file.
func create(prefix string) (Run, []*os.File, error) {
	// One at a time on this machine: a directory isn't locked when it's made.
	machine, err := lock(cgroupMount, syscall.LOCK_EX)
	if err != nil {
		return Run{}, nil, err
	}
	defer machine.Close()
	if err := sweep(prefix); err != nil {
		return Run{}, nil, fmt.Errorf("remove what a dead run left: %w", err)
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return Run{}, nil, err
	}
	run := Run{Dir: dir}
	var locks []*os.File
	for _, path := range run.leftovers() {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return Run{}, nil, errors.Join(err, remove(run))
		}
		f, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			return Run{}, nil, errors.Join(err, remove(run))
		}
		locks = append(locks, f)
	}
	return run, locks, nil
}

// leftovers are the directories that outlive the run's namespaces.
func (r Run) leftovers() []string {
	paths := []string{r.Dir}
	for _, h := range hierarchies() {
		for machine := 1; machine <= Machines; machine++ {
			paths = append(paths, filepath.Join(h, r.Cgroup(machine)))
		}
	}
	return paths
}

// sweep removes what runs left that nobody could clean up after.
func sweep(prefix string) error {
	var errs []error
	for _, parent := range append(hierarchies(), os.TempDir()) {
		paths, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			f, err := lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
			if err != nil {
				continue // held: that run lives
			}
			errs = append(errs, removeTree(path))
			f.Close()
		}
	}
	return errors.Join(errs...)
}

func remove(run Run) error {
	var errs []error
	for _, path := range run.leftovers() {
		errs = append(errs, removeTree(path))
	}
	return errors.Join(errs...)
}

// EmptyCgroups removes what is below a machine's cgroups. Their processes must
// be dead.
func (r Run) EmptyCgroups(machine int) error {
	var errs []error
	for _, h := range hierarchies() {
		below, err := filepath.Glob(filepath.Join(h, r.Cgroup(machine), "*", "cgroup.procs"))
		errs = append(errs, err)
		for _, procs := range below {
			errs = append(errs, removeTree(filepath.Dir(procs)))
		}
	}
	return errors.Join(errs...)
}

// removeTree removes a directory or a cgroup with everything below.
func removeTree(path string) error {
	removeAll := os.RemoveAll
	if strings.HasPrefix(path, cgroupMount) {
		removeAll = removeCgroups
	}
	deadline := time.Now().Add(removeWithin)
	for {
		err := removeAll(path)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeCgroups removes directories only: the files in them are the kernel's.
func removeCgroups(root string) error {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		err = errors.Join(err, syscall.Rmdir(dir))
	}
	return err
}

func lock(path string, how int) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

const cgroupMount = "/sys/fs/cgroup"

// hierarchies are the mounted cgroup hierarchies: one with cgroup v2, one per
// controller with v1.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		return []string{cgroupMount}
	}
	paths, _ := filepath.Glob(filepath.Join(cgroupMount, "*", "cgroup.procs"))
	for i, p := range paths {
		paths[i] = filepath.Dir(p)
	}
	return paths
}
