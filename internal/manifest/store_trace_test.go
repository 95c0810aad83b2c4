package manifest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// call is one system call that changed the store's directories, or made a change durable.
type call struct {
	step string // of the scenario
	name string // as open, write, chown, chmod, fsync, rename, mkdir, symlink, unlink, rmdir
	path string // relative to the node's directory
	to   string // of a rename: the new path
	data string // what was written; of a symlink its target; of a chmod the mode
}

func (c call) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.name, c.path, c.to))
}

// traced are all the calls by which Go changes files; see call.name.
const traced = "openat,write,fchown,fchmod,fsync,renameat,renameat2,mkdirat,symlinkat,unlinkat,fchownat,fchmodat,linkat,ftruncate,pwrite64"

// traceScenario runs the scenario and returns what it did, in order.
func traceScenario(t testing.TB, n *node) []call {
	t.Helper()
	return parseTrace(t, n.dir, logScenario(t, n, traced))
}

// logScenario runs the scenario and returns strace's log of the thread that ran it.
func logScenario(t testing.TB, n *node, calls string) (log string) {
	t.Helper()
	logs := t.TempDir()
	output, err := runScenario(t, n, "--seccomp-bpf", "-ff", "-o", filepath.Join(logs, "trace"), "-y", "-xx", "-s", "1000000", "-e", "trace="+calls)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	files, err := filepath.Glob(filepath.Join(logs, "trace.*"))
	must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(data), escape("/step/start")) {
			return string(data)
		}
	}
	t.Fatalf("none of the %d threads ran the scenario\n%s", len(files), output)
	return ""
}

var (
	callLine = regexp.MustCompile(`^(\w+)\((.*)\) += (-?\d+)`)
	fdPath   = regexp.MustCompile(`^(?:\d+|AT_FDCWD)<([^>]*)>`)
	quoted   = regexp.MustCompile(`"((?:\\x[0-9a-f]{2})*)"`)
)

// parseTrace reads a log.
func parseTrace(t testing.TB, dir, log string) (calls []call) {
	t.Helper()
	step := ""
	for line := range strings.Lines(log) {
		match := callLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		c, ok := parseCall(t, match[1], match[2])
		if name, marker := strings.CutPrefix(c.path, "/step/"); marker {
			step = name
			continue
		}
		if !ok || match[3] == "-1" || step == "" || c.path != dir && !strings.HasPrefix(c.path, dir+"/") {
			continue
		}
		c.step = step
		c.path = strings.TrimPrefix(strings.TrimPrefix(c.path, dir), "/")
		c.to = strings.TrimPrefix(c.to, dir+"/")
		calls = append(calls, c)
	}
	return calls
}

func parseCall(t testing.TB, name, args string) (c call, changes bool) {
	t.Helper()
	var words []string
	for _, m := range quoted.FindAllStringSubmatch(args, -1) {
		words = append(words, unescape(t, m[1]))
	}
	base := ""
	if m := fdPath.FindStringSubmatch(args); m != nil {
		base = unescape(t, m[1])
	}
	at := func(dir, name string) string {
		if path.IsAbs(name) {
			return name
		}
		return path.Join(dir, name)
	}
	after := func() string { // the directory that a second path is relative to
		return unescape(t, fdPath.FindStringSubmatch(args[strings.Index(args, `", `)+3:])[1])
	}
	switch name {
	case "openat":
		return call{name: "open", path: at(base, words[0])}, strings.Contains(args, "O_CREAT")
	case "write":
		return call{name: "write", path: base, data: strings.Join(words, "")}, true
	case "fchown", "fsync":
		return call{name: map[string]string{"fchown": "chown", "fsync": "fsync"}[name], path: base}, true
	case "fchmod":
		return call{name: "chmod", path: base, data: args[strings.LastIndex(args, " ")+1:]}, true
	case "mkdirat":
		return call{name: "mkdir", path: at(base, words[0])}, true
	case "unlinkat":
		return call{name: "unlink", path: at(base, words[0])}, true
	case "renameat", "renameat2":
		return call{name: "rename", path: at(base, words[0]), to: at(after(), words[1])}, true
	case "symlinkat":
		return call{name: "symlink", path: at(after(), words[1]), data: words[0]}, true
	default:
		t.Fatalf("unexpected call %s(%s)", name, args)
		return call{}, false
	}
}

// unescape reads strace's -xx notation.
func unescape(t testing.TB, s string) string {
	t.Helper()
	if !strings.HasPrefix(s, `\x`) {
		return s
	}
	var b strings.Builder
	for _, hex := range strings.Split(s, `\x`)[1:] {
		c, err := strconv.ParseUint(hex, 16, 8)
		must(t, err)
		b.WriteByte(byte(c))
	}
	return b.String()
}

// escape writes strace's -xx notation.
func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}
