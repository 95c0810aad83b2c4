//go:build linux

package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// socketOf is a socket of the test alone: abstract names are the whole machine's.
func socketOf(t *testing.T) string {
	return fmt.Sprintf("@pod-checkpointer-test/%d/%s", os.Getpid(), t.Name())
}

// serve returns when the socket is there.
func serve(t *testing.T, answer func(context.Context) (string, error)) (socket string) {
	t.Helper()
	socket = socketOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); Serve(ctx, socket, answer, zerolog.Nop()) }()
	t.Cleanup(func() { cancel(); <-done })
	await(t, socket)
	return socket
}

func await(t *testing.T, socket string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestAnAgentThatIsAliveSaysWhatItDoes(t *testing.T) {
	socket := serve(t, func(context.Context) (string, error) { return "leading", nil })
	got, err := Ask(t.Context(), socket)
	if err != nil || got != "leading" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAnAgentWhoseLoopHangsIsAnError(t *testing.T) {
	socket := serve(t, func(ctx context.Context) (string, error) {
		<-ctx.Done() // as a loop does that takes nothing any more
		return "", errors.New("the loop hangs")
	})
	start := time.Now()
	_, err := Ask(t.Context(), socket)
	if err == nil || !strings.Contains(err.Error(), "the loop hangs") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v, more than the 10 s that a probe has", took)
	}
}

func TestNoAgentIsAnError(t *testing.T) {
	if _, err := Ask(t.Context(), socketOf(t)); !errors.Is(err, ErrNobody) {
		t.Errorf("got %v", err)
	}
}

func TestASocketThatIsTakenDoesNotStopTheAgent(t *testing.T) {
	socket := serve(t, func(context.Context) (string, error) { return "leading", nil })
	var log bytes.Buffer
	Serve(t.Context(), socket, nil, zerolog.New(&log)) // returns
	if !strings.Contains(log.String(), "probes can't be answered") {
		t.Errorf("logged: %s", &log)
	}
}

// TestAnotherUserIsNeitherBelievedNorAnswered runs this test's binary as the user nobody, as each of the two sides.
func TestAnotherUserIsNeitherBelievedNorAnswered(t *testing.T) {
	if socket := os.Getenv("PROBE_AS_NOBODY"); socket != "" {
		if os.Getenv("PROBE_ROLE") == "server" {
			Serve(t.Context(), socket, func(context.Context) (string, error) { return "leading", nil }, zerolog.Nop())
			return
		}
		answer, err := Ask(t.Context(), socket)
		fmt.Println("answer:", answer, err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: this test needs root, to become another user")
	}
	asked := serve(t, func(context.Context) (string, error) { return "secret", nil })
	asked2 := asked + "/nobody"
	client := asNobody(t, "client", asked)
	out, err := client.CombinedOutput()
	if err != nil || strings.Contains(string(out), "secret") || !strings.Contains(string(out), "answer:") {
		t.Errorf("another user got %v: %s", err, out)
	}
	server := asNobody(t, "server", asked2)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	await(t, asked2)
	if answer, err := Ask(t.Context(), asked2); err == nil || !strings.Contains(err.Error(), "is no agent: it runs as user 65534") {
		t.Errorf("another user was believed: %q, %v", answer, err)
	}
}

func asNobody(t *testing.T, role, socket string) *exec.Cmd {
	// The test's binary lies in a directory of root's.
	open, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3", "-test.run=^TestAnotherUserIsNeitherBelievedNorAnswered$")
	cmd.ExtraFiles = []*os.File{open}
	cmd.Dir = "/"
	cmd.Env = []string{"PROBE_AS_NOBODY=" + socket, "PROBE_ROLE=" + role}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}
