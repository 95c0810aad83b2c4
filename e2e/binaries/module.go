package binaries

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// builder makes a module whose only requirement is the source, and returns its
// directory. `go install module@version` would do the same, but refuses modules
// with replace directives.
func (s source) builder(ctx context.Context) (dir string, err error) {
	dir = filepath.Join(s.dir(), "builder")
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	theirs, err := s.goMod(ctx)
	if err != nil {
		return "", err
	}
	if s.main != "" {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(s.main), 0o644); err != nil {
			return "", err
		}
	}
	temp := filepath.Join(dir, "go.mod.tmp")
	if err := os.WriteFile(temp, s.ourGoMod(theirs), 0o644); err != nil {
		return "", err
	}
	return dir, os.Rename(temp, filepath.Join(dir, "go.mod"))
}

// goMod is the part of a go.mod that a builder takes over.
type goMod struct {
	Go      string
	GoDebug []struct{ Key, Value string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

func (s source) goMod(ctx context.Context) (goMod, error) {
	out, err := run(ctx, os.TempDir(), "go", "mod", "download", "-json", s.module+"@v"+s.version)
	if err != nil {
		return goMod{}, err
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal(out, &module); err != nil {
		return goMod{}, err
	}
	if out, err = run(ctx, os.TempDir(), "go", "mod", "edit", "-json", module.GoMod); err != nil {
		return goMod{}, err
	}
	var m goMod
	return m, json.Unmarshal(out, &m)
}

// ourGoMod requires the source. k8s.io/kubernetes names its staging modules
// v0.0.0 and replaces them by directories of its own repository; outside of it
// they're published as v0.<minor>.<patch>.
func (s source) ourGoMod(theirs goMod) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "module builder\n\ngo %s\n\n", theirs.Go)
	for _, d := range theirs.GoDebug {
		fmt.Fprintf(&b, "godebug %s=%s\n", d.Key, d.Value)
	}
	fmt.Fprintf(&b, "require %s v%s\n\n", s.module, s.version)
	staging := "v0." + strings.TrimPrefix(s.version, "1.")
	for _, r := range theirs.Replace {
		if strings.HasPrefix(r.New.Path, "./staging/") {
			fmt.Fprintf(&b, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, staging)
		}
	}
	return []byte(b.String())
}
