package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fromText(t *testing.T, text string) (Image, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "program"), []byte("binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	return FromDockerfile("owner/name:tag", path, filepath.Dir(path))
}

// TestDockerfile reads the archive back as a runtime does.
func TestDockerfile(t *testing.T) {
	i, err := fromText(t, "# comment\nFROM scratch\nLABEL \\\n  a=\"b c\"\nCOPY program /bin/\nUSER 0:0\nENTRYPOINT [\"/bin/program\", \"run\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := i.Write(path); err != nil {
		t.Fatal(err)
	}
	files := untar(t, path)
	var manifests []manifest
	if err := json.Unmarshal(files["manifest.json"], &manifests); err != nil {
		t.Fatal(err)
	}
	if want := []string{"docker.io/owner/name:tag"}; !slices.Equal(manifests[0].RepoTags, want) {
		t.Errorf("tags are %q, want %q", manifests[0].RepoTags, want)
	}
	var c config
	if err := json.Unmarshal(files[manifests[0].Config], &c); err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/program", "run"}; !slices.Equal(c.Config.Entrypoint, want) || c.Config.User != "0:0" || c.Config.Labels["a"] != "b c" {
		t.Errorf("process is %+v, want entrypoint %q of user 0:0, label a", c.Config, want)
	}
	layer := filepath.Join(t.TempDir(), "layer.tar")
	if err := os.WriteFile(layer, files[manifests[0].Layers[0]], 0o644); err != nil {
		t.Fatal(err)
	}
	if got := string(untar(t, layer)["bin/program"]); got != "binary" {
		t.Errorf("the layer has bin/program = %q", got)
	}
}

func TestDockerfileRefusesWhatItCannotDo(t *testing.T) {
	for _, line := range []string{"FROM debian", "RUN true", "COPY --from=x a b", "COPY a b c/", "ENTRYPOINT /bin/program", "EXPOSE 80", "LABEL a=b c=d"} {
		if _, err := fromText(t, line); err == nil || !strings.Contains(err.Error(), line[:4]) {
			t.Errorf("%q: error is %v, want one that shows the line", line, err)
		}
	}
}

func untar(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
