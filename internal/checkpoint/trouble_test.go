package checkpoint

import (
	"testing"
	"time"
)

// replaced is a lineage on the node's network whose new pod is managed by the kubelet, and whose last good checkpoint is
// of the pod before it.
func replaced(t *testing.T) *story {
	s := newStory(t).healthy()
	c := s.stored(web, webUID)
	c.Handover, c.HostPorts, c.Ports = HandoverCreated, true, []Port{"6443/TCP"}
	s.parent(web, "web-2").Handover = HandoverCreated
	s.w.Managed["web-2"] = Managed{}
	return s
}

func TestCrashLoopingPodIsReplacedByItsLastGoodCheckpoint(t *testing.T) {
	s := replaced(t)
	s.container("web-2", ContainerExited)
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
	s.phase(web, Active, ReasonParentStuck)
	s.kubeletRunsStatic()
	for range 20 { // its moments of life flip nothing
		s.container("web-2", ContainerRunning)
		s.plan()
		s.pass(s.p.PromoteAfter / 2)
		s.container("web-2", ContainerExited)
		s.plan()
		s.pass(time.Minute)
		s.expect()
	}
}

func TestStuckPodIsRememberedAcrossRestartsOfTheAgent(t *testing.T) {
	s := replaced(t)
	s.container("web-2", ContainerExited)
	s.plan()
	s.pass(s.p.StuckAfter)
	s.kubeletRunsStatic()
	s.states = nil
	s.plan()
	s.phase(web, Active, ReasonParentStuck)
	s.expect()
}

func TestStuckPodThatIsUpForLongIsTrustedAgain(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.container(webUID, ContainerExited)
	s.w.Managed[webUID] = Managed{}
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.runs(webUID)
	s.plan()
	s.pass(s.p.PromoteAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("withdraw")
}

func TestNextPodTakesOverFromTheStuckOnesCheckpoint(t *testing.T) {
	s := replaced(t)
	s.container("web-2", ContainerExited)
	s.plan()
	s.pass(s.p.StuckAfter)
	s.kubeletRunsStatic()
	s.stop("web-2")
	s.w.Parents = nil
	s.parent(web, "web-3").Handover = HandoverCreated
	s.runs("web-3")
	s.plan()
	s.expect("withdraw")
}

func TestPodWhoseImageCannotBePulledIsReplacedAndStillTakesOver(t *testing.T) {
	s := replaced(t)
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.container("web-2", ContainerCreated)
	s.plan()
	s.expect("withdraw")
}

func TestShortDowntimesDoNotAddUp(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	for range 50 {
		s.runs(webUID)
		s.plan()
		s.pass(2 * time.Minute)
		s.expect()
		s.container(webUID, ContainerExited)
		s.plan()
		s.pass(time.Minute)
		s.expect()
	}
}

func TestDowntimeIsNotCountedWhileTheRuntimeIsUnknown(t *testing.T) {
	s := replaced(t)
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.w.Runtime = RuntimeUnknown
	s.plan()
	s.pass(time.Hour)
	s.w.Runtime = RuntimeKnown
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
}

func TestBadFlagOnTheOnlyAPIServerHealsByItself(t *testing.T) {
	s := replaced(t)
	s.api(APILost)
	delete(s.w.Managed, "web-2")
	s.plan()
	s.pass(s.p.Settle)
	s.expect("activate") // the old pod is gone, the new one not here yet
	s.kubeletRunsStatic()
	s.api(APIServing)
	s.w.Managed["web-2"] = Managed{}
	s.container("web-2", ContainerCreated)
	s.plan()
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.api(APILost)
	kicked := 0
	for range 10 {
		s.container("web-2", ContainerRunning)
		s.plan()
		s.container("web-2", ContainerExited)
		s.plan()
		for _, a := range s.did {
			if a.Kind == Kick {
				kicked++
			}
		}
		s.pass(time.Second)
	}
	if kicked != kicks {
		t.Fatalf("kicked %d times, want %d", kicked, kicks)
	}
	s.pass(s.p.HandoverTimeout - 10*time.Second)
	s.expect("activate")
	s.phase(web, Active, ReasonParentStuck)
	s.kubeletRunsStatic()
	s.api(APIServing)
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

// A kubelet that failed to start the pod while its port was taken tries again after a back-off. With its checkpoint back on
// the port, the pod could never prove itself.
func TestPodThatHadNoChanceToTakeItsPortIsNotStuck(t *testing.T) {
	s := replaced(t)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID).Handover = HandoverCreated
	s.w.Managed[webUID] = Managed{}
	s.container(webUID, ContainerCreated)
	s.plan()
	s.expect("withdraw")
	s.container(webUID, ContainerExited)
	s.plan()
	s.expect("kick")
	s.w.Sandboxes = append(s.w.Sandboxes, Sandbox{ID: "next", UID: webUID, Ready: true, Created: s.w.Now}) // its container waits
	s.plan()
	static := len(s.w.Sandboxes)
	s.kubeletRunsStatic() // the checkpoint is gone
	if len(s.w.Sandboxes) == static {
		t.Fatal("the checkpoint did not run")
	}
	s.plan()
	s.pass(s.p.HandoverTimeout + 10*time.Second)
	s.expect()
	s.phase(web, Stored, ReasonParentManaged)
	s.runs(webUID)
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonParentUp)
}

// A checkpoint and its pod that share a port answer each other's probes.
func TestPodThatSharesItsPortTakesOverWhenItHasBeenReadyForAWhile(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).HostPorts = true
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID).Handover = HandoverShared
	for range 10 { // it crashes, Ready by its checkpoint's grace
		s.runs(webUID)
		s.plan()
		s.pass(s.p.PromoteAfter - 1)
		s.container(webUID, ContainerExited)
		s.plan()
		s.expect()
	}
	s.runs(webUID)
	s.plan()
	s.pass(s.p.PromoteAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("withdraw")
}

func TestWhatWasDownForDaysIsNotStuckAtTheNextMoment(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	state := func(state ContainerState) {
		s.w.Sandboxes[0].Containers[0].State = state
		s.plan()
	}
	state(ContainerExited)
	s.pass(72 * time.Hour)
	s.phase(web, Active, ReasonCheckpointStuck)
	state(ContainerRunning)
	s.pass(time.Hour)
	state(ContainerExited)
	s.phase(web, Active, ReasonParentAbsent)
}

func TestPodThatMakesUseOfItsPortIsNotKicked(t *testing.T) {
	s := newStory(t)
	c := s.stored(web, webUID)
	c.Handover, c.HostPorts = HandoverCreated, true
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID).Handover = HandoverCreated
	s.w.Managed[webUID] = Managed{}
	s.container(webUID, ContainerCreated)
	s.plan()
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.runs(webUID)
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonParentUp)
}

func TestEvictedByTheKubeletsOwnWordIsNotActivated(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.api(APILost)
	s.w.Evicted = map[UID]bool{webUID: true}
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonParentEvicted)
}

func TestOlderPodOfADeploymentTakesOverThoughItsSuccessorIsStuck(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.runs(webUID)
	s.w.Now = s.w.Now.Add(time.Second)
	s.parent(web, "web-2") // by surge, beside the older one
	s.w.Managed["web-2"] = Managed{}
	s.container("web-2", ContainerExited)
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect()
	parents := s.w.Parents
	s.powerCut()
	s.expect("activate")
	s.kubeletRunsStatic()
	s.healthy()
	s.w.Parents = parents
	s.w.Managed["web-2"] = Managed{}
	s.container("web-2", ContainerExited)
	s.plan()
	s.expect()
	s.runs(webUID)
	s.plan()
	s.expect("withdraw")
}

// Without the kubelet's word, the sandbox of a parent that crashes is no sign that it takes over from a checkpoint that was
// activated because of it, and is only about to start.
func TestKubeletThatCantTellDoesNotMakeACrashingParentTakeOver(t *testing.T) {
	s := newStory(t).healthy()
	s.kubelet(KubeletAbsent)
	c := s.stored(web, webUID)
	c.Handover, c.HostPorts = HandoverCreated, true
	s.parent(web, webUID).Handover = HandoverCreated
	s.container(webUID, ContainerExited)
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect("activate")
	s.pass(time.Second)
	s.kubeletRunsStatic()
	s.pass(time.Hour)
	s.expect()
	s.container(webUID, ContainerCreated) // in a sandbox that is newer
	s.plan()
	s.expect("withdraw")
}

func TestActiveManifestThatIsTheLastCopyIsNotWithdrawn(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID)
	s.runs(webUID)
	s.w.Disk.Checkpoints[0].Stored = Missing
	states, actions, _ := Plan(s.states, s.w, s.p)
	if len(actions) != 1 || actions[0].Kind != Restore || states[web].Reason != ReasonLastCopy {
		t.Fatalf("%v because of %q", actions, states[web].Reason)
	}
	s.plan() // the disk is whole again
	s.plan()
	s.expect("withdraw")
}

func TestMomentOfLifeOfACrashingParentDoesNotEndLoadBearing(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID).Active = Intact
	s.kubeletRunsStatic()
	s.w.Disk.Marks = map[Lineage]Marks{web: {LoadBearing: true}}
	s.parent(web, "web-2")
	s.w.Managed["web-2"] = Managed{}
	for range 3 {
		s.container("web-2", ContainerRunning)
		s.plan()
		s.pass(time.Second)
		s.container("web-2", ContainerExited)
		s.plan()
		s.pass(time.Minute)
	}
	if !s.w.Disk.Marks[web].LoadBearing {
		t.Fatal("what the API server lives on would be withdrawn again")
	}
	s.runs("web-2")
	s.plan()
	s.pass(s.p.PromoteAfter)
	s.plan()
	if s.w.Disk.Marks[web].LoadBearing {
		t.Fatal("the mark stays though the parent is Ready")
	}
}

func TestKubeletThatTellsNothingMayOnlyBeStarting(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).HostPorts = true
	s.powerCut()
	s.kubelet(KubeletAbsent)
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("retry")
}

// The API server, which ran in the checkpoint, went away before the kubelet learned that the pod is to end.
func TestDeletedPodThatTheKubeletRunsInVainWithoutAPIGetsStuckToo(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, "web-2").Deleting = true
	s.container("web-2", ContainerExited)
	s.w.Managed["web-2"] = Managed{}
	s.plan()
	s.api(APILost)
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

// After our restart without API, all that is known of the parent is its checkpoint.
func TestParentThatNobodyTellsOfGetsStuckToo(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.api(APILost)
	s.container(webUID, ContainerExited)
	s.w.Managed[webUID] = Managed{}
	s.plan()
	s.pass(s.p.StuckAfter)
	s.expect("activate")
}
