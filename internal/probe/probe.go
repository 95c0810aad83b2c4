// Package probe lets a command in the same container ask the agent whether it is alive, without a port and without a file:
// over an abstract Unix socket, which is gone with its process.
//
// # Guarantees
//
//   - Both sides talk only to a process of their own user or of root: everybody in the network namespace, and that is the
//     whole host, could listen or ask at an abstract socket.
//   - An agent that hangs or is stopped is an error within Patience.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

const (
	// Patience is how long Ask waits at most.
	Patience = 8 * time.Second
	// answerTimeout is how long the agent may take to find its answer.
	answerTimeout = 5 * time.Second
	// maxAnswer is in bytes.
	maxAnswer = 4 << 10

	alive, failed = "alive: ", "failed: "
)

// ErrNobody says that nobody listens.
var ErrNobody = errors.New("no agent listens here")

// DefaultSocket names the socket of the agent in this container: after the PID namespace, which each container has of
// its own where the network namespace is everybody's.
func DefaultSocket() string {
	info, err := os.Stat("/proc/self/ns/pid")
	if err != nil {
		return "@pod-checkpointer"
	}
	return fmt.Sprintf("@pod-checkpointer/%d", info.Sys().(*syscall.Stat_t).Ino)
}

// Serve answers whoever connects until ctx ends, with what answer says or with its error. An agent that can't listen
// does its work all the same.
func Serve(ctx context.Context, socket string, answer func(context.Context) (string, error), log zerolog.Logger) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Warn().Err(err).Str("socket", socket).Msg("probes can't be answered: the socket is taken or can't be made")
		return
	}
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	var conversations sync.WaitGroup
	defer conversations.Wait()
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // ctx ended
		}
		conversations.Go(func() {
			defer conn.Close()
			reply(ctx, conn, answer)
		})
	}
}

func reply(ctx context.Context, conn net.Conn, answer func(context.Context) (string, error)) {
	if checkPeer(conn) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	text, err := answer(ctx)
	if err != nil {
		text = failed + err.Error()
	} else {
		text = alive + text
	}
	_ = conn.SetWriteDeadline(time.Now().Add(answerTimeout))
	_, _ = io.WriteString(conn, text)
}

// Ask is what the agent says that it does. The error wraps ErrNobody if none is there.
func Ask(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: nothing is at the socket %s; --probe-socket names the agent's", ErrNobody, socket)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := checkPeer(conn); err != nil {
		return "", fmt.Errorf("who listens at the socket %s is no agent: %w", socket, err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetReadDeadline(deadline)
	said, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", fmt.Errorf("the agent does not answer for %v: it is stopped, or hangs", Patience)
	}
	if err != nil {
		return "", err
	}
	if text, ok := strings.CutPrefix(string(said), alive); ok {
		return text, nil
	}
	if text, ok := strings.CutPrefix(string(said), failed); ok {
		return "", errors.New(text)
	}
	return "", errors.New("the agent hung up: it ends, or takes us for another user")
}
