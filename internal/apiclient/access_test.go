package apiclient

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"k8s.io/klog/v2"
)

func TestUnusableKubeconfig(t *testing.T) {
	authority := newAuthority(t)
	for name, c := range map[string]struct {
		spoil func(path string)
		says  string
	}{
		"missing":               {func(path string) { os.Remove(path) }, "no such file"},
		"not a kubeconfig":      {func(path string) { write(t, path, []byte("{")) }, "can't be used"},
		"without a cluster":     {func(path string) { write(t, path, []byte("apiVersion: v1\nkind: Config\n")) }, "can't be used"},
		"certificate is gone":   {func(path string) { os.Remove(filepath.Join(filepath.Dir(path), "client-current.pem")) }, "client-current.pem"},
		"certificate is empty":  {func(path string) { write(t, filepath.Join(filepath.Dir(path), "client-current.pem"), nil) }, "is empty"},
		"certificate is broken": {func(path string) { write(t, filepath.Join(filepath.Dir(path), "client-current.pem"), []byte("?")) }, "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet.conf")
			kubeconfig(t, path, "127.0.0.1:1", authority, authority.issue())
			c.spoil(path)
			_, err := New(Config{Kubeconfig: path, NodeName: node}, zerolog.Nop())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range []string{path, "--kubeconfig", c.says} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

// TestRefresh: every file that the kubeconfig names counts, and a half-written one is not taken.
func TestRefresh(t *testing.T) {
	authority := newAuthority(t)
	path := filepath.Join(t.TempDir(), "kubelet.conf")
	certificate := filepath.Join(filepath.Dir(path), "client-current.pem")
	kubeconfig(t, path, "127.0.0.1:1", authority, authority.issue())
	c, err := New(Config{Kubeconfig: path, NodeName: node}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"the certificate", func() { write(t, certificate, authority.issue()) }, true},
		{"nothing after that", func() {}, false},
		{"a certificate in the making", func() { write(t, certificate, authority.issue()[:100]) }, false},
		{"the certificate, at last", func() { write(t, certificate, authority.issue()) }, true},
		{"the server", func() { kubeconfig(t, path, "127.0.0.1:2", authority, authority.issue()) }, true},
	} {
		before := c.watching()
		step.change()
		if got := c.refresh(); got != step.want || (c.watching() != before) != step.want {
			t.Errorf("after a change of %s: refreshed %v, want %v", step.what, got, step.want)
		}
	}
}

// TestLogThrough: client-go's complaints are nobody's news.
func TestLogThrough(t *testing.T) {
	var lines bytes.Buffer
	LogThrough(zerolog.New(&lines).Level(zerolog.DebugLevel))
	t.Cleanup(func() { LogThrough(zerolog.Nop()) })
	klog.Warning("watch failed")
	klog.ErrorS(nil, "list failed", "attempt", 3)
	klog.V(4).Info("chatter")
	want := `{"level":"debug","message":"watch failed"}
{"level":"debug","attempt":3,"message":"list failed"}
`
	if got := lines.String(); got != want {
		t.Errorf("logged:\n%swant:\n%s", got, want)
	}
	lines.Reset()
	LogThrough(zerolog.New(&lines).Level(zerolog.InfoLevel))
	klog.Warning("watch failed")
	if lines.Len() > 0 {
		t.Errorf("logged at info: %s", &lines)
	}
}
