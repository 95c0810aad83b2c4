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
	for subset := range 1 << min(len(pending), 4) {
		survive := make(map[string]bool)
		for i, name := range pending {
			if i < 4 {
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

// At every system call of a checkpoint's life the process is killed, or the power is cut and some or all of what was not
// fsynced is lost. Afterwards the disk must hold the old checkpoint or the new one, whole; doing the step again must lead
// to the new one; and removing that must leave nothing behind.
func TestCutAtEverySystemCall(t *testing.T) {
	n := newScenario(t, memoryDir(t))
	calls := traceScenario(t, n)
	steps := map[string]int{"start": -1}
	for i, s := range scenario() {
		steps[s.name] = i
	}
	root := newDir()
	root.entries["manifests"] = newDir()
	root.dur["manifests"] = root.entries["manifests"]
	cuts := 0
	for i, c := range calls {
		root.apply(t, c)
		t.Run(fmt.Sprintf("%s/%d", c.step, i), func(t *testing.T) {
			n.t = t
			var l loss
			defer func() {
				if t.Failed() {
					t.Logf("cut after %s; %s", c, l)
				}
			}()
			for _, l = range root.losses(uint64(i)) {
				cuts++
				n.wantRecovery(root, l, steps[c.step])
			}
		})
	}
	t.Logf("%d cuts at %d system calls", cuts, len(calls))
}

// wantRecovery checks what becomes of a disk that was cut in a step of the scenario.
func (n *node) wantRecovery(root *inode, l loss, at int) {
	t := n.t
	t.Helper()
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		must(t, os.RemoveAll(dir))
	}
	l.write(t, root, n.dir, "")
	n.wantVolumesOfActive()
	n.restart()
	before, now := step{}, step{}
	if at > 0 {
		before = scenario()[at-1]
	}
	if at >= 0 {
		now = scenario()[at]
		n.wantOneOf([]step{before, now}, "after the restart")
		must(t, now.do(n))
	}
	n.wantOneOf([]step{now}, "when the step was done again")
	if now.after != nil {
		must(t, n.store.Withdraw("kube-system", "web"))
		must(t, n.store.Remove("kube-system", "web"))
	}
	n.wantNothingLeft()
}

// wantVolumesOfActive checks what the kubelet finds when it starts before we do: with a manifest in its directory, each
// volume of it is there and shows all of its content.
func (n *node) wantVolumesOfActive() {
	n.t.Helper()
	if _, err := os.Stat(n.active()); err != nil {
		return
	}
	for _, volume := range []string{"config", "token"} {
		names, err := os.ReadDir(n.asset(volume + "/..data"))
		if err != nil || len(names) == 0 {
			n.t.Fatalf("the active checkpoint's volume %s holds %v (%v)", volume, names, err)
		}
		for _, name := range names {
			if _, err := os.Stat(n.asset(volume + "/" + name.Name())); err != nil {
				n.t.Fatalf("the active checkpoint's volume %s does not show all of its content: %v", volume, err)
			}
		}
	}
}

func (n *node) wantNothingLeft() {
	n.t.Helper()
	for _, dir := range []string{n.dirs.Manifests, n.dirs.Inactive, n.dirs.Assets} {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			n.t.Errorf("%s still holds %v (%v)", dir, names, err)
		}
	}
}

// memoryDir is a directory on a disk that takes no time to fsync, if there is one.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pod-checkpointer-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}
