package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

func isProblem(l line) bool { return l.Message == "something is wrong on disk" }

const foreignWeb = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-x7k2p, namespace: kube-system}\n"

func TestForeignManifestOfTheSamePodIsToldOnceAndKeepsOursAway(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		theirs := filepath.Join(n.dirs.Manifests, "web.yaml")
		must(t, os.WriteFile(theirs, []byte(foreignWeb), 0o600))
		logged := n.since()
		n.diskChanged()
		n.powerCut(nil)
		n.pass(time.Hour)
		n.diskChanged()
		n.wantNoFile(n.active(web))
		// Once by each of the two processes.
		if told := logged(isProblem); len(told) != 2 || told[0].Level != "warn" || told[0].Path != theirs || !strings.Contains(told[0].Problem, "kube-system/web-x7k2p") {
			t.Errorf("told %+v", told)
		}
		if loud := logged(func(l line) bool { return isFailure(l) && l.isLoud() }); len(loud) != 0 {
			t.Errorf("and told again: %+v", loud)
		}
		must(t, os.Remove(theirs))
		n.directoryChanged(n.dirs.Manifests)
		n.pass(time.Second)
		n.wantFile(n.active(web))

		logged = n.since()
		must(t, os.WriteFile(theirs, []byte(foreignWeb), 0o600))
		n.directoryChanged(n.dirs.Manifests)
		n.pass(time.Hour)
		if told := logged(isProblem); len(told) != 1 || !strings.Contains(told[0].Problem, "active") {
			t.Errorf("beside an active checkpoint: %+v", told)
		}
		n.wantFile(n.active(web))
	})
}

// directoryChanged tells of a change in one directory.
func (n *node) directoryChanged(dir string) {
	n.loop.Directories.Put(map[string]bool{dir: true})
	n.pass(0)
}

func TestStoredFileDamagedInOurAbsenceIsToldAndKept(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		must(t, os.Truncate(n.stored(web), 20))
		logged := n.since()
		n.powerCut(nil)
		n.pass(time.Hour)
		n.diskChanged()
		if told := logged(isProblem); len(told) != 1 || told[0].Path != n.stored(web) || !strings.Contains(told[0].Problem, "remove it") {
			t.Errorf("told %+v", told)
		}
		if info, err := os.Stat(n.stored(web)); err != nil || info.Size() != 20 {
			t.Errorf("it was touched: %v", err)
		}
		n.healthy(web)
		if info, err := os.Stat(n.stored(web)); err != nil || info.Size() == 20 {
			t.Errorf("not written again: %v", err)
		}
	})
}

func TestDamagedAssetIsRestoredAtOnce(t *testing.T) {
	damages := map[string]func(content string) error{
		"altered": func(content string) error { return os.WriteFile(filepath.Join(content, "file"), []byte("two"), 0o600) },
		"deleted": func(content string) error { return os.Remove(filepath.Join(content, "file")) },
		"all":     os.RemoveAll,
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			onNode(t, func(n *node) {
				web := withVolume(daemonPod("web"))
				n.mount(web, "one")
				n.healthy(web)
				n.pass(time.Minute)
				volume := filepath.Join(n.dirs.Assets, "kube-system_web-x7k2p", "config")
				generation, err := os.Readlink(filepath.Join(volume, "..data"))
				must(t, err)
				if got, want := strings.Join(n.watch.watched, " "), strings.Join([]string{filepath.Dir(volume), volume, filepath.Join(volume, generation)}, " "); got != want {
					t.Fatalf("watched are %s, want %s", got, want)
				}
				logged := n.since()
				must(t, damage(filepath.Join(volume, generation)))
				n.directoryChanged(filepath.Join(volume, generation))
				if data, err := os.ReadFile(filepath.Join(volume, "file")); err != nil || string(data) != "one" {
					t.Errorf("%q, %v\n%s", data, err, n.log)
				}
				if told := logged(isProblem); len(told) != 1 || !strings.Contains(told[0].Problem, "config") {
					t.Errorf("told %+v", told)
				}
				if again := logged(isDone); len(again) != 1 || again[0].Action != "save" || again[0].Reason != string(checkpoint.ReasonAssetsChanged) {
					t.Errorf("done: %+v", again)
				}
			})
		})
	}
}

// A save that fails leaves and takes away things among the assets: that is no reason to try it again at once.
func TestCuresThatCanBeSeenAreNoticedAtOnce(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		n.healthy(web)
		heal := n.spoilWrites(n.active(web))
		n.powerCut(nil)
		n.pass(time.Hour)
		n.wantFile(filepath.Join(n.active(web), "somebody's"))
		heal()
		n.directoryChanged(n.dirs.Manifests)
		n.pass(time.Second)
		n.wantFile(n.active(web))
	})
}

func TestEventsDoNotTurnFailuresIntoAHotLoop(t *testing.T) {
	for dir, most := range map[string]int{"manifests": 70, "assets": 25} { // in a minute: once a second; as without events
		t.Run(dir, func(t *testing.T) {
			onNode(t, func(n *node) {
				web := daemonPod("web")
				n.spoilWrites(n.stored(web))
				n.healthy(web)
				n.pass(time.Hour)
				logged := n.since()
				for range 60 * 10 {
					n.directoryChanged(filepath.Join(filepath.Dir(n.dirs.Manifests), dir))
					time.Sleep(100 * time.Millisecond)
				}
				if tries := len(logged(isFailure)); tries < 5 || tries > most {
					t.Errorf("%d tries in a minute", tries)
				}
			})
		})
	}
}

func TestBlindCureIsNoticedWithinFiveSeconds(t *testing.T) {
	onNode(t, func(n *node) {
		web := daemonPod("web")
		heal := n.spoilWrites(n.stored(web))
		n.healthy(web)
		n.pass(time.Hour)
		heal() // and nothing tells
		n.pass(5 * time.Second)
		if info, err := os.Stat(n.stored(web)); err != nil || !info.Mode().IsRegular() {
			t.Errorf("not saved: %v", err)
		}
	})
}
