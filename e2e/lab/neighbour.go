//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
)

// Neighbour is a second machine, NeighbourName, as a node of the cluster. It has
// namespaces, disks, cgroups and a cable of its own, and the checkpointer's
// image. A process of its own looks after it; tests see it as other nodes do,
// and as the API server does.
type Neighbour struct {
	machine machine
	process *exec.Cmd
}

// neighbourReady is what the neighbour's process says when its node is Ready.
const neighbourReady = "ready\n"

// StartNeighbour returns when the API says that the node is Ready. The
// neighbour ends with ctx, or with Close.
func StartNeighbour(ctx context.Context) (*Neighbour, error) {
	n := &Neighbour{machine{here.run, 2}, here.run.Another(ctx, numberVariable+"=2")}
	out, err := n.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said != neighbourReady {
		return nil, errors.Join(fmt.Errorf("the neighbour didn't come up: %q, %w", said, err), n.Close())
	}
	return n, nil
}

// Path is where a path of the neighbour is, seen from here.
func (n *Neighbour) Path(path string) string {
	return fmt.Sprintf("/proc/%d/root%s", n.process.Process.Pid, path)
}

// Close ends the neighbour and wipes its disk, except for the logs.
func (n *Neighbour) Close() error {
	if err := n.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	// Its error is that it was killed.
	n.process.Wait()
	return errors.Join(
		n.machine.run.EmptyCgroups(n.machine.number),
		os.RemoveAll(n.machine.own("overlay")),
		os.RemoveAll(n.machine.own("disk", "var", "lib")),
	)
}

// neighbourMain is the program on the second machine, and its exit status.
func neighbourMain() int {
	if err := runNeighbour(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: neighbour:", err)
		return 1
	}
	fmt.Print(neighbourReady)
	select {} // until it is killed
}

func runNeighbour(ctx context.Context) (err error) {
	c := &Cluster{machine: here}
	if c.ca, err = pki.ReadAuthority(c.PKI(), "ca"); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	n, err := StartNode(ctx, c, NodeOptions{})
	if err != nil {
		return err
	}
	return n.ImportCheckpointer(ctx)
}
