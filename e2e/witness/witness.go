// Package witness is what the test workload of images/witness tells about
// itself. It has no dependencies, so that the workload stays a small program.
package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Testimony is the answer of a witness.
type Testimony struct {
	Hostname string            `json:"hostname"`
	PID      int               `json:"pid"`
	Started  time.Time         `json:"started"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	// Dirs has one listing for each ?dir= of the request.
	Dirs map[string][]File `json:"dirs,omitempty"`
}

// File is a file as a reader sees it: symbolic links are followed.
type File struct {
	Path   string `json:"path"` // relative to the directory asked for
	Type   string `json:"type"` // "file", "dir" or "other"
	Mode   string `json:"mode"` // permissions as in "-rw-r--r--"
	UID    uint32 `json:"uid"`
	GID    uint32 `json:"gid"`
	Size   int64  `json:"size,omitempty"`   // bytes, files only
	SHA256 string `json:"sha256,omitempty"` // hexadecimal, files only
	Error  string `json:"error,omitempty"`  // why it can't be read
}

// Testify describes this process and the directories.
func Testify(started time.Time, dirs []string) Testimony {
	hostname, _ := os.Hostname()
	t := Testimony{
		Hostname: hostname,
		PID:      os.Getpid(),
		Started:  started,
		Args:     os.Args,
		Env:      map[string]string{},
		Dirs:     map[string][]File{},
	}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		t.Env[name] = value
	}
	for _, dir := range dirs {
		t.Dirs[dir] = list(dir, "")
	}
	return t
}

// list walks below root/path and follows symbolic links. The kubelet's ..data
// and timestamped directories differ from one write to the next and aren't for
// readers, so they're left out; the links into them aren't.
func list(root, path string) []File {
	f := describe(filepath.Join(root, path))
	f.Path = path
	files := []File{f}
	if f.Type != "dir" {
		return files
	}
	entries, err := os.ReadDir(filepath.Join(root, path))
	if err != nil {
		files[0].Error = err.Error()
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "..") {
			files = append(files, list(root, filepath.Join(path, e.Name()))...)
		}
	}
	return files
}

func describe(path string) File {
	info, err := os.Stat(path)
	if err != nil {
		return File{Type: "other", Error: err.Error()}
	}
	owner := info.Sys().(*syscall.Stat_t)
	f := File{Type: kind(info.Mode()), Mode: info.Mode().String(), UID: owner.Uid, GID: owner.Gid}
	if f.Type != "file" {
		return f
	}
	f.Size = info.Size()
	data, err := os.ReadFile(path)
	if err != nil {
		f.Error = err.Error()
		return f
	}
	sum := sha256.Sum256(data)
	f.SHA256 = hex.EncodeToString(sum[:])
	return f
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "dir"
	default:
		return "other"
	}
}
