//go:build linux

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// tracedSave has strace look on while the real agent saves a checkpoint and activates it, and checks the order in which
// it makes them durable.
func tracedSave(ctx context.Context, s *testSite) {
	old, err := s.PodsOf(ctx, site.Namespace, "app=web")
	s.step("web has a pod", err)
	logs, stop := s.trace()
	_, err = s.Kubectl(ctx, "delete", "pod", "-n", site.Namespace, old[0].Name)
	s.step("it is deleted", err)
	s.step("its successor is ready", s.WaitDaemonSet(ctx, site.Namespace, "web"))
	pods, err := s.PodsOf(ctx, site.Namespace, "app=web")
	s.step("it has a name", err)
	web := pods[0].Name
	s.step("it is stored", site.Soon(ctx, "the save", func(context.Context) error { return site.Exists(site.Stored(web)) }))

	begin := time.Now()
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("kubelet is stopped", s.Kubelet.Stop(ctx))
	container, err := s.RunningContainer(ctx, site.Namespace, web, "witness")
	s.step("its container runs", err)
	s.step("its container is ended", s.EndContainer(ctx, container))
	s.step("kubelet is started", s.Kubelet.Start(ctx))
	s.step("it is active", site.Soon(ctx, "the end of the activation", func(context.Context) error {
		if !slices.ContainsFunc(s.log(begin), func(l site.LogLine) bool { return l.Action == "activate" && l.Pod == site.Namespace+"/"+web }) {
			return errors.New("not activated so far")
		}
		return site.Exists(site.Active(web))
	}, s.Kubelet))
	s.step("strace ends", stop())

	calls := readTraces(s, logs)
	assets := last(calls, "fsync", func(c systemCall) bool { return strings.HasPrefix(c.path, site.Assets(web)+"/") })
	stored, active := checkWrite(s, calls, site.Stored(web)), checkWrite(s, calls, site.Active(web))
	if assets < 0 || assets > stored || stored > active {
		s.t.Errorf("assets at %d, stored at %d, active at %d of %d calls", assets, stored, active, len(calls))
	}
}

// trace begins to trace the processes of the agent, into the files of a directory, until the returned function is called.
func (s *testSite) trace() (dir string, stop func() error) {
	s.t.Helper()
	dir = s.t.TempDir()
	args := []string{"-ff", "-ttt", "-y", "-s", "8", "-o", filepath.Join(dir, "trace"), "-e", "trace=openat,write,fchown,fchmod,fsync,renameat,renameat2"}
	comms, err := filepath.Glob("/proc/[0-9]*/comm")
	s.step("processes are listed", err)
	for _, comm := range comms {
		if name, err := os.ReadFile(comm); err == nil && strings.TrimSpace(string(name)) == "checkpointer" {
			args = append(args, "-p", path.Base(path.Dir(comm)))
		}
	}
	strace := exec.Command("strace", args...)
	s.step(fmt.Sprintf("strace starts: %v", args), strace.Start())
	s.step("it has attached to all", lab.Wait(s.t.Context(), "strace", func(context.Context) error {
		files, err := filepath.Glob(filepath.Join(dir, "trace.*"))
		if err == nil && len(files) == 0 {
			err = errors.New("it traces nothing so far")
		}
		return err
	}))
	return dir, func() error {
		err := strace.Process.Signal(syscall.SIGINT)
		_ = strace.Wait() // it ends by that signal
		return err
	}
}

// systemCall is one that changes a file, or makes it durable.
type systemCall struct {
	at   float64
	name string
	path string // of a rename the old one
	to   string // of a rename the new one
}

var (
	traceLine = regexp.MustCompile(`^(\d+\.\d+) (\w+)\((.*)\) = \d+`)
	openFile  = regexp.MustCompile(`^\d+<([^>]*)>`)
	twoNames  = regexp.MustCompile(`^\d+<([^>]*)>, "([^"]*)", \d+<([^>]*)>, "([^"]*)"`)
)

// readTraces merges the traces of all threads by time.
func readTraces(s *testSite, dir string) (calls []systemCall) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "trace.*"))
	s.step(fmt.Sprintf("%d threads were traced", len(files)), err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			m := traceLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at, _ := strconv.ParseFloat(m[1], 64)
			c := systemCall{at: at, name: m[2]}
			if names := twoNames.FindStringSubmatch(m[3]); names != nil {
				c.name, c.path, c.to = "rename", path.Join(names[1], names[2]), path.Join(names[3], names[4])
			} else if fd := openFile.FindStringSubmatch(m[3]); fd != nil {
				c.path = fd[1]
			}
			calls = append(calls, c)
		}
	}
	slices.SortFunc(calls, func(a, b systemCall) int { return cmp.Compare(a.at, b.at) })
	return calls
}

// checkWrite checks how a file got its name, and returns at which call. What is renamed is written, has its owner and
// mode, and is durable; and then its name is made so.
func checkWrite(s *testSite, calls []systemCall, file string) int {
	s.t.Helper()
	at := last(calls, "rename", func(c systemCall) bool { return c.to == file })
	if at < 0 {
		s.t.Fatalf("%s was not renamed to in any of %d calls", file, len(calls))
	}
	var before []string
	for _, c := range calls[:at] {
		if c.path == calls[at].path && c.name != "openat" {
			before = append(before, c.name)
		}
	}
	if want := []string{"write", "fchown", "fchmod", "fsync"}; !slices.Equal(before, want) {
		s.t.Errorf("%s: before it had its name: %q, want %q", file, before, want)
	}
	after := slices.IndexFunc(calls[at:], func(c systemCall) bool { return c.name == "fsync" })
	if after < 0 || calls[at+after].path != path.Dir(file) {
		s.t.Errorf("%s: its name was not made durable by the next fsync", file)
	}
	return at
}

func last(calls []systemCall, name string, is func(systemCall) bool) int {
	for i, c := range slices.Backward(calls) {
		if c.name == name && is(c) {
			return i
		}
	}
	return -1
}
