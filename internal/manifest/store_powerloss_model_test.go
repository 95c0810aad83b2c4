package manifest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// inode is a file, a directory or a symlink of a disk on which only what was fsynced is certain to survive: of a file
// its content and mode, of a directory its entries.
type inode struct {
	target        string            // of a symlink
	mode, durMode uint64            //
	data, durData string            // of a file
	entries, dur  map[string]*inode // of a directory
}

func newDir() *inode {
	return &inode{mode: 0o700, durMode: 0o700, entries: make(map[string]*inode), dur: make(map[string]*inode)}
}

func (root *inode) find(name string) *inode {
	if name == "" || name == "." {
		return root
	}
	dir, base := path.Split(name)
	return root.find(path.Clean(dir)).entries[base]
}

// apply does what a system call did.
func (root *inode) apply(t testing.TB, c call) {
	t.Helper()
	parent, base := root.find(path.Dir(c.path)), path.Base(c.path)
	switch c.name {
	case "open":
		parent.entries[base] = &inode{mode: 0o600, durMode: 0o600}
	case "mkdir":
		parent.entries[base] = newDir()
	case "symlink":
		parent.entries[base] = &inode{target: c.data}
	case "unlink":
		delete(parent.entries, base)
	case "rename":
		root.find(path.Dir(c.to)).entries[path.Base(c.to)] = parent.entries[base]
		delete(parent.entries, base)
	case "write":
		root.find(c.path).data += c.data
	case "chmod":
		mode, err := strconv.ParseUint(c.data, 8, 32)
		must(t, err)
		root.find(c.path).mode = mode
	case "fsync":
		f := root.find(c.path)
		f.durMode, f.durData, f.dur = f.mode, f.data, maps.Clone(f.entries)
	case "chown": // to ourselves
	default:
		t.Fatalf("unexpected call %s", c)
	}
}

// pending are the entries that no fsync has made certain yet: as "<directory>/<name>".
func (root *inode) pending(dir string) (names []string) {
	all := maps.Clone(root.dur)
	maps.Copy(all, root.entries)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if root.dur[name] != root.entries[name] {
			names = append(names, path.Join(dir, name))
		}
		if f := all[name]; f.entries != nil {
			names = append(names, f.pending(path.Join(dir, name))...)
		}
	}
	return slices.Compact(names)
}

// loss is one way to lose what was not fsynced.
type loss struct {
	survive  map[string]bool // of the pending entries
	contents bool            // whether contents and modes of files do
}

// losses are all the ways to lose the pending entries, or some if there are too many of them; each with and without the
// contents. One that loses nothing is what a killed process leaves.
func (root *inode) losses(seed uint64) (all []loss) {
	pending := root.pending("")
	random := rand.New(rand.NewPCG(seed, 0))
	for subset := range 1 << min(len(pending), 3) {
		survive := make(map[string]bool)
		for i, name := range pending {
			if i < 3 {
				survive[name] = subset>>i&1 == 1
			} else {
				survive[name] = random.IntN(2) == 1
			}
		}
		all = append(all, loss{survive, true}, loss{survive, false})
	}
	return all
}

func (l loss) String() string {
	return fmt.Sprintf("entries that survive: %v, contents: %v", l.survive, l.contents)
}

// write makes the directory at what survives of d, which is called dir.
func (l loss) write(t testing.TB, d *inode, at, dir string) {
	t.Helper()
	all := maps.Clone(d.dur)
	maps.Copy(all, d.entries)
	for name := range all {
		f, file := d.dur[name], filepath.Join(at, name)
		if l.survive[path.Join(dir, name)] { // an entry is the old or the new one: a rename is atomic
			f = d.entries[name]
		}
		if f == nil {
			continue
		}
		mode, data := f.mode, f.data
		if !l.contents {
			mode, data = f.durMode, f.durData
		}
		switch {
		case f.target != "":
			must(t, os.Symlink(f.target, file))
			continue
		case f.entries != nil:
			must(t, os.Mkdir(file, 0o700))
			l.write(t, f, file, path.Join(dir, name))
		default:
			must(t, os.WriteFile(file, []byte(data), 0o600))
		}
		must(t, os.Chmod(file, fileModeOf(mode)))
	}
}

func fileModeOf(mode uint64) os.FileMode {
	m := os.FileMode(mode & 0o777)
	if mode&0o1000 != 0 {
		m |= os.ModeSticky
	}
	if mode&0o2000 != 0 {
		m |= os.ModeSetgid
	}
	return m
}
