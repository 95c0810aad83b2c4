package checkpoint

import (
	"slices"
	"testing"
	"time"
)

// promoted is a lineage whose new pod has just proven itself: its checkpoint is stored beside the one before.
func promoted(t *testing.T) *story {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, "web-2")
	s.runs("web-2")
	s.plan()
	s.pass(s.p.PromoteAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("save")
	return s
}

func (s *story) names() (names []string) {
	for _, c := range s.w.Disk.Checkpoints {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

func TestGenerationBeforeIsKeptForADay(t *testing.T) {
	s := promoted(t)
	s.pass(s.p.KeepPrevious - 1)
	s.expect()
	s.pass(1)
	s.expect("remove")
	if got := s.names(); !slices.Equal(got, []string{"web-2"}) {
		t.Fatalf("on disk: %v", got)
	}
}

func TestGenerationBeforeGoesWhenTheNewOneHasRunAsACheckpoint(t *testing.T) {
	s := promoted(t)
	s.powerCut()
	s.expect("activate")
	s.kubeletRunsStatic()
	s.plan()
	s.expect("remove")
	if got := s.names(); !slices.Equal(got, []string{"web-2"}) {
		t.Fatalf("on disk: %v", got)
	}
}

func TestGenerationBeforeIsUsedWhenTheNewOneDoesNotComeUp(t *testing.T) {
	s := promoted(t)
	s.powerCut()
	s.kubeletRunsStatic()
	i := slices.IndexFunc(s.w.Sandboxes, func(b Sandbox) bool { return b.CheckpointOf == "web-2" })
	s.w.Sandboxes[i].Containers[0].State = ContainerExited
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("withdraw", "activate")
	s.kubeletRunsStatic()
	if b := s.w.Sandboxes[0]; b.CheckpointOf != string(webUID) {
		t.Fatalf("running: %v", b)
	}
	s.states = nil // the agent restarts
	s.plan()
	s.pass(365 * 24 * time.Hour)
	s.expect()
	if got := s.names(); len(got) != 2 {
		t.Fatalf("on disk: %v", got)
	}
}

func TestLastGenerationOfAllStaysThoughItDoesNotComeUp(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.w.Sandboxes[0].Containers[0].State = ContainerExited
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Active, ReasonCheckpointStuck)
}

func TestThirdGenerationPushesOutTheFirst(t *testing.T) {
	s := promoted(t)
	s.w.Parents = nil
	s.pass(time.Second)
	s.parent(web, "web-3")
	s.runs("web-3")
	s.plan()
	s.pass(s.p.PromoteAfter)
	s.expect("save", "remove")
	if got := s.names(); !slices.Equal(got, []string{"web-2", "web-3"}) {
		t.Fatalf("on disk: %v", got)
	}
}

func TestNoGenerationIsRemovedWhileAnotherStillRuns(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.stored(web, "web-2")
	s.w.Disk.Checkpoints[0].Active = Intact
	s.kubeletRunsStatic()
	s.w.Disk.Checkpoints[0].Active = Missing // withdrawn just now
	s.plan()
	s.pass(s.p.Grace)
	s.w.Confirmed[web] = s.w.Now
	s.plan()
	s.pass(time.Minute)
	s.expect()
	s.kubeletRunsStatic()
	s.plan()
	s.expect("remove")
}

// A disk that can't be written to would otherwise be left without either.
func TestGenerationBeforeStaysWhileItsSuccessorIsDamaged(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.w.Now = s.w.Now.Add(time.Second)
	s.stored(web, "web-2")
	s.parent(web, "web-2")
	s.runs("web-2")
	s.w.Now = s.w.Now.Add(s.p.KeepPrevious)
	for i := range s.w.Disk.Checkpoints {
		if c := &s.w.Disk.Checkpoints[i]; c.Name == "web-2" {
			c.Stored = Altered
		}
	}
	_, actions, _ := Plan(s.states, s.w, s.p)
	if len(actions) != 1 || actions[0].Kind != Restore {
		t.Fatalf("did %v", actions)
	}
	s.plan()
	s.plan()
	s.expect("remove")
}
