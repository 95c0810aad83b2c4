package apiclient

import (
	"net"
	"sync"
	"testing"
)

// cable carries connections to a server, and can be cut or go dead.
type cable struct {
	listener net.Listener
	mu       sync.Mutex
	dead     chan struct{} // nil unless nothing gets through
	open     map[net.Conn]bool
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, open: make(map[net.Conn]bool)}
	t.Cleanup(func() { listener.Close(); c.revive(); c.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(near, to)
		}
	}()
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) carry(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	c.mu.Lock()
	c.open[near] = true
	c.mu.Unlock()
	go c.copy(far, near)
	c.copy(near, far)
	c.mu.Lock()
	delete(c.open, near)
	c.mu.Unlock()
}

func (c *cable) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			to.Close()
			return
		}
		c.mu.Lock()
		dead := c.dead
		c.mu.Unlock()
		if dead != nil {
			<-dead
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// die lets nothing through any more, and closes nothing.
func (c *cable) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = make(chan struct{})
}

func (c *cable) revive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		close(c.dead)
		c.dead = nil
	}
}

// cut breaks the connections that are open.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}
