package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link that leads out of the volume is copied as a link, and never read or written through.
func TestPlantedLinks(t *testing.T) {
	n := newNode(t)
	precious := filepath.Join(t.TempDir(), "precious")
	must(t, os.WriteFile(precious, []byte("precious"), 0o644))
	generation, err := filepath.EvalSymlinks(filepath.Join(n.volume("kubernetes.io~projected", "token"), dataLink))
	must(t, err)
	must(t, os.Symlink(precious, filepath.Join(generation, "planted")))
	n.save("v1")
	if target, err := os.Readlink(n.asset("token/..data/planted")); err != nil || target != precious {
		t.Errorf("got %q, %v", target, err)
	}

	// And in our own directories: a name that is to be written leads elsewhere.
	must(t, os.RemoveAll(n.asset("token")))
	elsewhere := t.TempDir()
	must(t, os.Symlink(elsewhere, n.asset("token")))
	n.save("v1")
	if names, _ := os.ReadDir(elsewhere); len(names) > 0 {
		t.Errorf("wrote through a link: %v", names)
	}
	must(t, os.Remove(n.asset("config/a.conf")))
	must(t, os.Symlink(precious, n.asset("config/a.conf")))
	n.save("v1")
	if data, _ := os.ReadFile(precious); string(data) != "precious" {
		t.Errorf("wrote through a link: %q", data)
	}
	if data, _ := os.ReadFile(n.asset("config/a.conf")); string(data) != "one" {
		t.Errorf("the link was not replaced: reads %q", data)
	}
}

func TestDamagedAssets(t *testing.T) {
	damages := map[string]func(n *node) error{
		"emptied file":   func(n *node) error { return os.Truncate(n.asset("token/token"), 0) },
		"no content":     func(n *node) error { return os.Remove(n.asset("token/..data")) },
		"volume deleted": func(n *node) error { return os.RemoveAll(n.asset("token")) },
		"volume a file": func(n *node) error {
			return errors.Join(os.RemoveAll(n.asset("token")), os.WriteFile(n.asset("token"), nil, 0o600))
		},
		"all deleted": func(n *node) error { return os.RemoveAll(n.dirs.Assets) },
		"all a file": func(n *node) error {
			return errors.Join(os.RemoveAll(n.asset("")), os.WriteFile(n.asset(""), nil, 0o600))
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.save("v1")
			good := n.list().Digest
			must(t, damage(n))
			n.restart()
			if n.list().Digest == good {
				t.Error("the digest says that they are whole")
			}
			if err := n.store.Activate(web); err == nil || !strings.Contains(err.Error(), `"token"`) {
				t.Errorf("activated: %v", err)
			}
			n.save("v1")
			n.activate()
			if n.list().Digest != good {
				t.Error("not repaired")
			}
		})
	}
}
