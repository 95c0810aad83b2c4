package apiclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
)

// memory is a network without sockets, so that a test can run in a synctest bubble, where hours pass in no time.
type memory struct {
	handler http.Handler

	mu      sync.Mutex
	refuses bool // nobody listens
	open    map[*io.PipeWriter]bool
}

// inMemory runs a client whose server is the handler.
func inMemory(t *testing.T, handler http.Handler) (*running, *memory) {
	t.Helper()
	m := &memory{handler: handler, open: make(map[*io.PipeWriter]bool)}
	a := newAuthority(t)
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	kubeconfig(t, path, "api.example.test", a, a.issue())
	return runWith(t, path, func(c *Client) { c.access = m.access(t, c) }), m
}

func (m *memory) access(t *testing.T, c *Client) *access {
	t.Helper()
	config, made, err := readKubeconfig(c.config.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.TLSClientConfig = rest.TLSClientConfig{}
	return &access{watching: must(clientFor(config, c.observe(boundAnswers(m)))), reading: must(clientFor(config, boundAnswers(m))), made: made}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// refuse has connections refused, and breaks those that are open, as the end of a process does.
func (m *memory) refuse(refuse bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuses = refuse
	for pipe := range m.open {
		if refuse {
			pipe.CloseWithError(io.ErrUnexpectedEOF)
		}
	}
}

func (m *memory) connect(out *io.PipeWriter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	m.open[out] = true
	return nil
}

func (m *memory) close(out *io.PipeWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, out)
	out.Close()
}

func (m *memory) RoundTrip(request *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	if err := m.connect(out); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(request.Context())
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	w := &memoryWriter{PipeWriter: out, header: make(http.Header), begun: make(chan struct{})}
	go func() {
		m.handler.ServeHTTP(w, request.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		m.close(out)
	}()
	select {
	case <-w.begun:
		return &http.Response{
			StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, Body: memoryBody{in, cancel}, Request: request,
			ProtoMajor: 2, ContentLength: -1,
		}, nil
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

type memoryBody struct {
	io.Reader
	cancel func()
}

func (b memoryBody) Close() error {
	b.cancel()
	return nil
}

type memoryWriter struct {
	*io.PipeWriter
	header http.Header
	code   int
	once   sync.Once
	begun  chan struct{}
}

func (w *memoryWriter) Header() http.Header { return w.header }
func (w *memoryWriter) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *memoryWriter) WriteHeader(code int) {
	w.once.Do(func() {
		w.code = code
		close(w.begun)
	})
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.PipeWriter.Write(p)
}
