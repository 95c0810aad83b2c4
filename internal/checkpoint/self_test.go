package checkpoint

import (
	"testing"
	"time"
)

// rollOut is a checkpointer of an old revision that leads, and a pod of a new one that stands by.
func rollOut(t *testing.T) *story {
	s := newStory(t).healthy()
	s.p.Self, s.p.SelfName = selfLin, string(selfUID)
	s.stored(selfLin, selfUID).Active = Intact
	s.kubeletRunsStatic()
	s.parent(selfLin, "self-2")
	s.runs("self-2")
	s.plan()
	s.pass(s.p.PromoteAfter - 1)
	s.expect()
	s.pass(1)
	return s
}

// lead is another copy that takes the lock: it remembers nothing.
func (s *story) lead(name string) {
	s.p.SelfName, s.w.Start, s.states = name, s.w.Now, nil
	s.plan()
}

func (s *story) revisions(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, c := range s.w.Disk.Checkpoints {
		if c.Active == Intact {
			got = append(got, c.Name)
		}
	}
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		t.Fatalf("active revisions: %v, want %v", got, want)
	}
}

func TestNewRevisionLeadsBeforeTheOldOneGoes(t *testing.T) {
	s := rollOut(t)
	s.expect("save", "activate")
	s.kubeletRunsStatic()
	s.plan()
	s.expect("step-down")
	s.revisions(t, string(selfUID), "self-2")
	s.lead("self-2")
	s.pass(s.p.PromoteAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.plan()
	s.expect("remove")
	s.revisions(t, "self-2")
	s.pass(time.Hour)
	s.expect()
}

func TestRevisionThatCrashesWithTheLeadGetsNoSecondChance(t *testing.T) {
	s := rollOut(t)
	s.plan()
	s.expect("step-down")
	s.container("self-2", ContainerExited)
	s.lead(string(selfUID))
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.plan()
	s.expect("remove")
	s.revisions(t, string(selfUID))
	s.runs("self-2")
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.revisions(t, string(selfUID))
}

func TestRevisionAfterTheOneThatFailedIsTried(t *testing.T) {
	s := rollOut(t)
	s.plan()
	s.container("self-2", ContainerExited)
	s.lead(string(selfUID))
	s.plan()
	s.kubeletRunsStatic()
	s.plan()
	s.w.Parents = nil
	s.parent(selfLin, "self-3")
	s.runs("self-3")
	s.plan()
	s.pass(s.p.PromoteAfter)
	s.expect("save", "activate")
	s.plan()
	s.expect("step-down")
	if marks := s.w.Disk.Marks[selfLin]; marks.Stuck != "" {
		t.Fatalf("still marked: %v", marks)
	}
}

func TestLeadIsNotGivenToARevisionThatDoesNotStandBy(t *testing.T) {
	s := rollOut(t)
	s.stop("self-2")
	s.plan()
	s.pass(time.Hour)
	for _, a := range s.did {
		if a.Kind == StepDown || a.Kind == Withdraw {
			t.Fatalf("did %v", s.did)
		}
	}
}

func TestPowerCutDuringTheHandOverOfTheLeadFailsNoRevision(t *testing.T) {
	s := rollOut(t)
	s.plan()
	s.expect("step-down")
	s.p.SelfName = string(selfUID) // the old static copy wins the lock at boot
	s.powerCut()
	s.kubeletRunsStatic()
	s.plan()
	s.expect("step-down")
	s.lead("self-2")
	s.pass(s.p.PromoteAfter)
	s.expect("withdraw")
}

// The old copy dies, and the new revision's pod takes the lock before it has a checkpoint.
func TestNewRevisionThatLeadsEarlyDoesNotGiveTheLeadBack(t *testing.T) {
	s := newStory(t).healthy()
	s.p.Self, s.p.SelfName = selfLin, "self-2"
	s.stored(selfLin, selfUID).Active = Intact
	s.kubeletRunsStatic()
	s.container(selfUID, ContainerExited) // what crashed, beside the static copy that stands by
	s.parent(selfLin, "self-2")
	s.container("self-2", ContainerRunning)
	s.w.Managed["self-2"] = Managed{}
	s.plan()
	s.pass(time.Hour)
	s.expect()
	if len(s.w.Disk.Marks) != 0 {
		t.Fatalf("marks are %+v", s.w.Disk.Marks)
	}
	s.w.Managed["self-2"] = Managed{Ready: true}
	s.plan()
	s.pass(s.p.PromoteAfter)
	s.expect("save", "activate")
}
