package manifest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
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

// loss chooses what of the unsynced survives.
type loss struct {
	names, contents func() bool
}

func always() bool { return true }
func never() bool  { return false }

// losses are the ways to lose it: none at all is a killed process. The last are some of all mixtures.
func losses(seed uint64) map[string]loss {
	all := map[string]loss{
		"killed":                  {always, always},
		"all unsynced is lost":    {never, never},
		"names without contents":  {always, never},
		"contents without names":  {never, always},
		"the first mixture of it": {},
		"another mixture of it":   {},
	}
	for name, l := range all {
		if l.names == nil {
			random := rand.New(rand.NewPCG(seed, uint64(len(name))))
			coin := func() bool { return random.IntN(2) == 0 }
			all[name] = loss{coin, coin}
		}
	}
	return all
}

// write makes the directory dir what survives of d.
func (l loss) write(t testing.TB, d *inode, dir string) {
	t.Helper()
	names := maps.Clone(d.dur)
	for name := range names {
		if d.entries[name] != names[name] && l.names() {
			delete(names, name)
		}
	}
	for name, f := range d.entries {
		if d.dur[name] != f && l.names() {
			names[name] = f
		}
	}
	for name, f := range names {
		file, mode, data := filepath.Join(dir, name), f.mode, f.data
		if !l.contents() {
			mode, data = f.durMode, f.durData
		}
		switch {
		case f.target != "":
			must(t, os.Symlink(f.target, file))
			continue
		case f.entries != nil:
			must(t, os.Mkdir(file, 0o700))
			l.write(t, f, file)
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
		for name, l := range losses(uint64(i)) {
			if !t.Run(fmt.Sprintf("%s/%d %s, %s", c.step, i, c.name, name), func(t *testing.T) {
				n.t = t
				n.wantRecovery(root, l, steps[c.step])
			}) {
				t.Log(c)
			}
			cuts++
		}
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
	l.write(t, root, n.dir)
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
