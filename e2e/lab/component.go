//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const stopGrace = 5 * time.Second

// Component is a program of the cluster or the node: a kubelet, an API server.
// Its methods are safe for concurrent use.
type Component struct {
	name  string
	args  []string // the command line
	ready func(context.Context) error

	mu      sync.Mutex
	process *process // nil before the first start
}

// process is one life of a component.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	ended   chan struct{} // closed once cmd.Wait has returned
}

// Start starts the program and waits until it answers its health check. It's an
// error if something answers already.
func (c *Component) Start(ctx context.Context) error {
	if c.ready(ctx) == nil {
		return fmt.Errorf("%s, or another one, runs already", c.name)
	}
	p, err := c.launch()
	if err != nil {
		return err
	}
	return Wait(ctx, c.name+" to be healthy", func(ctx context.Context) error {
		select {
		case <-p.ended:
			return giveUp{fmt.Errorf("it ended: %s", p.cmd.ProcessState)}
		default:
			return c.ready(ctx)
		}
	}, c)
}

func (c *Component) launch() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process.alive() {
		return nil, fmt.Errorf("%s runs already", c.name)
	}
	log, err := os.OpenFile(c.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s start %q\n", time.Now().Format(time.StampMilli), c.args)
	p := &process{cmd: exec.Command(c.args[0], c.args[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// A group of its own keeps a terminal's Ctrl-C away.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	c.process = p
	return p, nil
}

// Stop sends SIGTERM, and SIGKILL when that isn't enough after five seconds, and
// waits for the end. An API server takes a minute if clients keep watching. A
// paused program is resumed first.
func (c *Component) Stop(ctx context.Context) error {
	if err := c.signal(syscall.SIGCONT); err != nil {
		return err
	}
	grace, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if c.end(grace, syscall.SIGTERM) == nil || !c.Running() {
		return nil
	}
	return c.Kill(ctx)
}

// Kill sends SIGKILL and waits for the end.
func (c *Component) Kill(ctx context.Context) error { return c.end(ctx, syscall.SIGKILL) }

// Pause stops the program where it is, with its connections open (SIGSTOP).
func (c *Component) Pause() error { return c.signal(syscall.SIGSTOP) }

// Resume continues a paused program (SIGCONT).
func (c *Component) Resume() error { return c.signal(syscall.SIGCONT) }

// Running tells whether the program runs, paused or not.
func (c *Component) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process.alive()
}

// StartedAt is when the program was last started; zero before the first time.
func (c *Component) StartedAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return time.Time{}
	}
	return c.process.started
}

// PID is the process id of the last start; 0 before the first.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return 0
	}
	return c.process.cmd.Process.Pid
}

// Log is the path of the program's log file, which all its lives share.
func (c *Component) Log() string { return filepath.Join(Logs, c.name+".log") }

func (c *Component) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.process.alive() {
		return fmt.Errorf("%s doesn't run", c.name)
	}
	return c.process.cmd.Process.Signal(s)
}

func (c *Component) end(ctx context.Context, s syscall.Signal) error {
	if err := c.signal(s); err != nil {
		return err
	}
	return Wait(ctx, fmt.Sprintf("%s to end after %s", c.name, s), func(context.Context) error {
		if c.Running() {
			return fmt.Errorf("it still runs")
		}
		return nil
	}, c)
}

func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}
