// Package image writes container images as docker-archive tars, one layer each,
// without a container engine. The same files make the same archive, whenever,
// wherever and by whomever it is made.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image is what goes into an archive.
type Image struct {
	// Name is a reference such as "pod-checkpointer/pod-checkpointer:dev".
	Name string
	// Architecture is the programs', as Go names it; this machine's by default.
	Architecture string
	// Files maps absolute paths in the image to files on disk.
	Files      map[string]string
	Labels     map[string]string
	Entrypoint []string
	Cmd        []string
	Env        []string
	User       string
	WorkingDir string
}

// config is the part of the OCI image configuration that a runtime reads.
type config struct {
	Architecture string  `json:"architecture"`
	OS           string  `json:"os"`
	Config       process `json:"config"`
	RootFS       rootFS  `json:"rootfs"`
}

type process struct {
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	User       string            `json:"User,omitempty"`
	WorkingDir string            `json:"WorkingDir,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type manifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Write writes the archive to path.
func (i Image) Write(path string) error {
	layer, err := i.writeLayer()
	if err != nil {
		return err
	}
	defer os.Remove(layer)
	digest, err := sha256File(layer)
	if err != nil {
		return err
	}
	configuration, err := json.Marshal(config{
		Architecture: cmp.Or(i.Architecture, runtime.GOARCH),
		OS:           "linux",
		Config:       process{i.Entrypoint, i.Cmd, i.Env, i.User, i.WorkingDir, i.Labels},
		RootFS:       rootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(configuration)
	names := manifest{
		Config:   hex.EncodeToString(sum[:]) + ".json",
		RepoTags: []string{FullName(i.Name)},
		Layers:   []string{digest + "/layer.tar"},
	}
	index, err := json.Marshal([]manifest{names})
	if err != nil {
		return err
	}
	return writeTar(path, func(w *tar.Writer) error {
		if err := addBytes(w, names.Config, configuration); err != nil {
			return err
		}
		if err := addFile(w, names.Layers[0], layer); err != nil {
			return err
		}
		return addBytes(w, "manifest.json", index)
	})
}

// writeLayer writes the root filesystem to a temporary tar.
func (i Image) writeLayer() (string, error) {
	f, err := os.CreateTemp("", "layer-*.tar")
	if err != nil {
		return "", err
	}
	f.Close()
	return f.Name(), writeTar(f.Name(), func(w *tar.Writer) error {
		for _, dir := range parents(i.Files) {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(i.Files)) {
			if err := addFile(w, strings.TrimPrefix(name, "/"), i.Files[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

// parents are the directories of the files, parents first, and the empty ones
// that a process may expect.
func parents(files map[string]string) []string {
	dirs := map[string]bool{"tmp": true, "etc": true}
	for name := range files {
		for dir := path.Dir(strings.TrimPrefix(name, "/")); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// FullName is the reference as containerd and the kubelet spell it:
// docker.io and library/ are what a short name leaves out.
func FullName(name string) string {
	host, _, slash := strings.Cut(name, "/")
	switch {
	case slash && (strings.ContainsAny(host, ".:") || host == "localhost"):
		return name
	case slash:
		return "docker.io/" + name
	default:
		return "docker.io/library/" + name
	}
}

func writeTar(path string, fill func(*tar.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	if err := fill(w); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

func addFile(w *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 { // whatever the umask was
		mode = 0o755
	}
	return add(w, name, mode, info.Size(), f)
}

func addBytes(w *tar.Writer, name string, data []byte) error {
	return add(w, name, 0o644, int64(len(data)), bytes.NewReader(data))
}

func add(w *tar.Writer, name string, mode, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}

func sha256File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
