package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestStories plays the files of testdata/stories, each of which tells of one case in an operator's words. A story begins
// with a node on which nothing is wrong, and the pod is that of the DaemonSet web, unless it says otherwise.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d stories: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, string(text))
		})
	}
}

func play(t *testing.T, text string) {
	s := newStory(t).healthy()
	var did []Action
	expected := 0
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == "expect":
			expected++
			if got, want := kindsOf(did), words[1:]; strings.Join(got, " ") != strings.TrimPrefix(strings.Join(want, " "), "nothing") {
				t.Fatalf("line %d: did %v, want %v", i+1, got, want)
			}
			did = nil
			continue
		case words[0] == "state":
			s.phase(lineageOf(words[1]), phaseOf(t, words[2]), Reason(words[3]))
			continue
		case words[0] == "power":
			s.powerCut()
		case words[0] == "pass":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			s.pass(d)
		default:
			if !s.tell(words) {
				t.Fatalf("line %d: nobody understands %q", i+1, line)
			}
			s.plan()
		}
		did = append(did, s.did...)
	}
	if expected == 0 {
		t.Fatal("it expects nothing, so that it can't fail")
	}
}

func kindsOf(actions []Action) (kinds []string) {
	for _, a := range actions {
		if a.Kind != Mark {
			kinds = append(kinds, a.Kind.String())
		}
	}
	return slices.Compact(kinds)
}

func phaseOf(t *testing.T, name string) Phase {
	for p := Absent; p <= Removing; p++ {
		if p.String() == name {
			return p
		}
	}
	t.Fatalf("there is no phase %s", name)
	return Absent
}

// lineageOf is what a pod's name has before its last dash: web-2 is of web.
func lineageOf(pod string) Lineage {
	if i := strings.LastIndexByte(pod, '-'); i >= 0 {
		return Lineage(pod[:i])
	}
	return Lineage(pod)
}

// tell lets happen what a line of a story says.
func (s *story) tell(words []string) bool {
	switch words[0] {
	case "api":
		s.w.API, s.w.APISince = named(words[1], APIUnknown, APILost), s.w.Now
		s.w.APICurrent = s.w.API == APIServing
	case "kubelet":
		if words[1] == "runs" { // what lies in its static pod directory
			s.kubeletRunsStatic()
			return true
		}
		s.kubelet(named(words[1], KubeletUnknown, KubeletAbsent))
	case "runtime":
		s.w.Runtime = named(words[1], RuntimeUnknown, RuntimeKnown)
	case "checkpointer":
		s.w.Start, s.states, s.w.Parents = s.w.Now, nil, nil
		s.w.APICurrent = false
	case "confirmed":
		s.w.Confirmed[lineageOf(words[1])] = s.w.Now
	case "checkpoint":
		return s.tellOfCheckpoint(words[1], words[2:])
	case "pod":
		return s.tellOfPod(UID(words[1]), words[2:])
	default:
		return false
	}
	return true
}

// named is the value of a fact by its name.
func named[T interface {
	~uint8
	String() string
}](name string, from, to T) T {
	for v := from; v <= to; v++ {
		if v.String() == name {
			return v
		}
	}
	panic("there is no " + name)
}

func (s *story) tellOfCheckpoint(name string, words []string) bool {
	if words[0] == "of" { // the pod's checkpoint is stored, as: exclusive, hostnetwork, previous
		c := s.stored(lineageOf(words[1]), UID(words[1]))
		c.SavedAt = s.w.Now
		for _, word := range words[2:] {
			switch word {
			case "exclusive":
				c.Handover = HandoverExclusive
			case "hostnetwork":
				c.Handover, c.HostPorts, c.Ports = HandoverCreated, true, []Port{"6443/TCP"}
			default:
				return false
			}
		}
		return true
	}
	for i := range s.w.Disk.Checkpoints {
		c := &s.w.Disk.Checkpoints[i]
		if c.Name != name {
			continue
		}
		switch strings.Join(words, " ") {
		case "active file is lost":
			c.Active = Missing
		case "stored file is damaged":
			c.Stored = Altered
		case "crashes":
			for j := range s.w.Sandboxes {
				if b := &s.w.Sandboxes[j]; b.Of(c) {
					b.Containers[0].State = ContainerExited
				}
			}
		default:
			return false
		}
		return true
	}
	return false
}

func (s *story) tellOfPod(uid UID, words []string) bool {
	at := slices.IndexFunc(s.w.Parents, func(p Parent) bool { return p.UID == uid })
	managed := func(ready bool) {
		if s.w.Kubelet == KubeletSynced {
			s.w.Managed[uid] = Managed{Ready: ready}
		}
	}
	switch what := strings.Join(words, " "); what {
	case "is created", "is created exclusive", "is created hostnetwork":
		p := s.parent(lineageOf(string(uid)), uid)
		switch words[len(words)-1] {
		case "exclusive":
			p.Handover = HandoverExclusive
		case "hostnetwork":
			p.Handover, p.Ports = HandoverCreated, []Port{"6443/TCP"}
		}
	case "is pending": // the kubelet has it in hand, and there is no container yet
		managed(false)
	case "is starting": // its container is created
		s.container(uid, ContainerCreated)
		managed(false)
	case "is up": // and runs
		s.container(uid, ContainerRunning)
		managed(false)
	case "is ready":
		s.container(uid, ContainerRunning)
		managed(true)
	case "crashes":
		s.container(uid, ContainerExited)
	case "stops":
		s.stop(uid)
		delete(s.w.Managed, uid)
	case "failed", "is evicted":
		s.stop(uid)
		delete(s.w.Managed, uid)
		s.w.Parents[at].Phase = map[bool]PodPhase{true: PodEnded, false: PodEvicted}[what == "failed"]
	case "is being deleted":
		s.w.Parents[at].Deleting = true
		delete(s.w.Managed, uid)
	case "is gone":
		s.stop(uid)
		delete(s.w.Managed, uid)
		s.w.Parents = slices.Delete(s.w.Parents, at, at+1)
	case "has another secret":
		s.w.Parents[at].Digest += "+"
	default:
		return false
	}
	return true
}
