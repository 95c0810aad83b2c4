package kubelet

import (
	"net"
	"sync"
	"testing"
)

// link is a way to a socket on which everything can be made to stand still.
type link struct {
	mu sync.RWMutex // held for writing while frozen
}

func newLink(t *testing.T, from, to string) *link {
	t.Helper()
	listener, err := net.Listen("unix", from)
	must(t, err)
	l := new(link)
	var copies sync.WaitGroup
	t.Cleanup(func() { listener.Close(); copies.Wait() })
	copies.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", to)
			if err != nil {
				near.Close()
				continue
			}
			copies.Go(func() { l.carry(near, far) })
			copies.Go(func() { l.carry(far, near) })
		}
	})
	return l
}

func (l *link) carry(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.RLock()
		_, writeErr := to.Write(buffer[:n])
		l.mu.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

func (l *link) freeze() { l.mu.Lock() }
func (l *link) thaw()   { l.mu.Unlock() }
