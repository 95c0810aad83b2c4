package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Ensure builds what the cache lacks and reports progress, one line per
// program, to progress. It needs the Go toolchain, and the network for modules
// that aren't in Go's module cache yet. Two callers take turns.
func Ensure(ctx context.Context, progress io.Writer) error {
	var missing []target
	all := targets()
	for _, t := range all {
		if _, err := os.Stat(t.path()); err != nil {
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	unlock, err := lockCache(progress)
	if err != nil {
		return err
	}
	defer unlock()
	for i, t := range missing {
		if _, err := os.Stat(t.path()); err == nil {
			continue // built by whoever held the lock before us
		}
		fmt.Fprintf(progress, "e2e: building %s %s (%d of %d)\n", t.name(), t.source.version, i+1, len(missing))
		started := time.Now()
		if err := t.build(ctx); err != nil {
			return fmt.Errorf("build %s %s: %w", t.name(), t.source.version, err)
		}
		fmt.Fprintf(progress, "e2e: built %s in %.0f s\n", t.name(), time.Since(started).Seconds())
	}
	return nil
}

// Path is where Ensure puts the named program.
func Path(name string) string {
	for _, t := range targets() {
		if t.name() == name {
			return t.path()
		}
	}
	panic("binaries: nobody builds " + name)
}

// Dirs are the directories that hold the built programs, for a PATH.
func Dirs() []string {
	var dirs []string
	for _, s := range sources() {
		dirs = append(dirs, s.dir())
	}
	return dirs
}

// target is one program of one source.
type target struct {
	source  source
	command string
}

func targets() []target {
	var all []target
	for _, s := range sources() {
		for _, c := range s.commands {
			all = append(all, target{s, c})
		}
		if s.main != "" {
			all = append(all, target{s, ""})
		}
	}
	return all
}

func (t target) name() string {
	if t.command == "" {
		return t.source.name
	}
	return path.Base(t.command)
}

func (t target) path() string { return filepath.Join(t.source.dir(), t.name()) }

// build compiles into a temporary file and renames it, so that the cache never
// holds half a program.
func (t target) build(ctx context.Context) error {
	module, err := t.source.builder(ctx)
	if err != nil {
		return err
	}
	pkg := "."
	if t.command != "" {
		pkg = t.source.module + "/" + t.command
	}
	temp := t.path() + ".tmp"
	defer os.Remove(temp)
	if _, err := run(ctx, module, "go", "build", "-mod=mod", "-trimpath", "-ldflags="+t.source.ldflags(), "-o", temp, pkg); err != nil {
		return err
	}
	return os.Rename(temp, t.path())
}

// cacheDir is ${XDG_CACHE_HOME:-$HOME/.cache}/pod-checkpointer.
func cacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = os.TempDir()
	}
	return filepath.Join(base, "pod-checkpointer")
}

func (s source) dir() string {
	name := s.name + "-" + s.version
	if s.recipe != "" {
		name += "-" + s.recipe
	}
	return filepath.Join(cacheDir(), name)
}

func lockCache(progress io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(cacheDir(), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(cacheDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Fprintln(progress, "e2e: another run is building, waiting for it")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
	return func() { f.Close() }, nil
}

// run runs a command in dir, niced, without cgo and outside any workspace, and
// returns what it wrote to stdout. The error carries all its output: go mod
// download -json puts its reason into the JSON.
func run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "nice", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	endWithUs(cmd)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return out, nil
}
