package checkpoint

import (
	"slices"
	"testing"
	"time"
)

func TestFirstCheckpointIsStoredWhenEveryContainerRuns(t *testing.T) {
	s := newStory(t).healthy()
	s.parent(web, webUID)
	s.container(webUID, ContainerCreated)
	s.plan()
	s.expect()
	s.container(webUID, ContainerRunning)
	s.plan()
	s.expect("save")
	s.plan()
	s.phase(web, Stored, ReasonParentUp)
}

func TestRefusedPodKeepsItsEarlierCheckpoint(t *testing.T) {
	s := newStory(t).healthy()
	p := s.parent(web, webUID)
	p.Rendering, p.Digest = Refused, ""
	s.stored(web, webUID)
	s.runs(webUID)
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

func TestPowerCutWithoutAPIActivatesAtOnce(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.expect("activate")
	s.phase(web, Active, ReasonParentAbsent)
	s.kubeletRunsStatic()
	s.pass(24 * time.Hour)
	s.expect() // 0 rewrites for a day
}

func TestNothingIsDoneWhileTheRuntimeIsUnknown(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.runs(webUID)
	s.plan()
	s.w.Runtime, s.w.Sandboxes = RuntimeUnknown, nil
	s.api(APILost)
	s.kubelet(KubeletUnsynced)
	s.plan()
	s.pass(3 * time.Minute)
	s.expect()
}

func TestAPIAloneGoneDoesNothingWhileTheKubeletManages(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.runs(webUID)
	s.plan()
	for _, api := range []API{APILost, APIRefusing, APIFailing, APIUnknown} {
		s.api(api)
		s.container(webUID, ContainerExited) // the kubelet restarts it
		s.plan()
		s.pass(s.p.StuckAfter / 2)
		s.expect()
		s.phase(web, Stored, ReasonParentManaged)
		s.container(webUID, ContainerRunning)
		s.plan()
		s.pass(time.Hour)
		s.expect()
	}
}

func TestUnmanagedParentWithoutAPIIsActivatedAfterItsContainersAreQuiet(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.api(APILost)
	s.container(webUID, ContainerExited)
	s.plan()
	s.pass(s.p.Settle - 1)
	s.expect()
	s.container(webUID, ContainerCreated)
	s.plan()
	s.pass(s.p.Settle - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
}

func TestAPIThatSaysNothingIsWaitedForOnlyAtStart(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.w.Runtime = RuntimeKnown
	s.kubelet(KubeletUnsynced)
	s.plan()
	s.pass(s.p.APITimeout - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
}

func TestKubeletThatSaysNothingIsWaitedForOnlyALittle(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.w.Runtime = RuntimeKnown
	s.api(APILost)
	s.plan()
	s.pass(s.p.KubeletTimeout + s.p.Settle - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
}

func TestDeletedParentIsNotActivated(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.plan()
	s.pass(s.p.Grace - 1)
	s.expect()
	s.phase(web, Stored, ReasonParentGone)
}

func TestEvictedParentIsNotActivated(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID).Phase = PodEvicted
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.api(APILost)
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

func TestFailedParentIsActivatedWhenStuck(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID).Phase = PodEnded
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.pass(time.Hour)
	s.expect() // the same UID never runs again: it stays active
}

func TestKubeletThatTurnsToTheAPIIsGivenTime(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID)
	s.kubelet(KubeletUnsynced)
	s.plan()
	s.pass(s.p.KubeletSync - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
}

func TestWithdrawnWhenTheParentOnThePodNetworkIsReady(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.api(APIServing)
	s.parent(web, webUID).Ready = true // as before the power cut
	s.plan()
	s.expect()
	s.kubelet(KubeletSynced)
	s.w.Managed[webUID] = Managed{}
	s.container(webUID, ContainerRunning)
	s.plan()
	s.expect()
	s.phase(web, Active, ReasonParentNotReady)
	s.w.Managed[webUID] = Managed{Ready: true}
	s.plan()
	s.expect("withdraw")
	s.phase(web, Leaving, ReasonParentUp)
	s.kubeletRunsStatic()
	s.plan()
	s.phase(web, Stored, ReasonParentUp)
}

func TestWithdrawnWhenTheParentIsUpButNeverReady(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID)
	s.w.Managed[webUID] = Managed{}
	s.container(webUID, ContainerRunning)
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("withdraw")
}

func TestHostNetworkIsWithdrawnWhenTheFirstContainerIsCreated(t *testing.T) {
	s := newStory(t)
	c := s.stored(web, webUID)
	c.Handover, c.HostPorts = HandoverCreated, true
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID).Handover = HandoverCreated
	s.w.Managed[webUID] = Managed{}
	s.plan()
	s.expect() // managed is too early
	s.container(webUID, ContainerCreated)
	s.w.Sandboxes[len(s.w.Sandboxes)-1].Containers[0].Name = "an init container"
	s.plan()
	s.expect() // so is an init container
	s.container(webUID, ContainerCreated)
	s.plan()
	s.expect("withdraw")
}

func TestExclusiveDataIsNeverUsedByTwo(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).Handover = HandoverExclusive
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.parent(web, webUID).Handover = HandoverExclusive
	s.w.Managed[webUID] = Managed{}
	s.plan()
	s.expect()
	for range 3 { // the kubelet makes a sandbox again and again
		s.container(webUID, ContainerCreated)
		s.plan()
		if s.did[0].Kind != StopSandbox {
			t.Fatalf("did %v, want the parent's sandbox stopped first", s.did)
		}
		s.container(webUID, ContainerCreated)
		s.pass(apart - 1)
		s.expect()
		s.pass(1)
		s.expect("stop-sandbox")
		s.pass(apart)
	}
	s.kubeletRunsStatic() // the checkpoint has stopped
	s.runs(webUID)
	s.plan()
	s.expect()
	s.phase(web, Stored, ReasonParentUp)
}

func TestExclusiveCheckpointWaitsForTheOrphansEnd(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).Handover = HandoverExclusive
	s.w.Runtime = RuntimeKnown
	s.container(webUID, ContainerExited)
	orphan := slices.Clone(s.w.Sandboxes)
	s.api(APILost)
	s.kubelet(KubeletUnsynced)
	s.states, s.did, _ = Plan(s.states, s.w, s.p)
	s.expect("stop-sandbox")
	s.w.Sandboxes = orphan
	s.stop(webUID)
	s.plan()
	s.expect("activate")
}

func TestExclusiveCheckpointIsNotActivatedBesideATerminatingParent(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID).Handover = HandoverExclusive
	s.container(webUID, ContainerExited)
	s.api(APILost)
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonStillRunning)
}

func TestOrphanThatHoldsTheHostPortIsStoppedFirst(t *testing.T) {
	s := newStory(t)
	c := s.stored(web, webUID)
	c.HostPorts = true
	s.w.Runtime = RuntimeKnown
	s.container(webUID, ContainerExited)
	s.api(APILost)
	s.kubelet(KubeletUnsynced)
	s.plan()
	s.expect("stop-sandbox", "activate")
}

func TestOrphanThatRunsIsLeftAlone(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.w.Runtime = RuntimeKnown
	s.container(webUID, ContainerRunning)
	s.api(APILost)
	s.kubelet(KubeletUnsynced)
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

func TestFilesOfOursComeBack(t *testing.T) {
	for _, state := range []File{Missing, Altered} {
		s := newStory(t)
		s.stored(web, webUID)
		s.powerCut()
		s.kubeletRunsStatic()
		s.w.Disk.Checkpoints[0].Active = state
		s.plan()
		s.expect("activate")
		s.w.Disk.Checkpoints[0].Stored = state
		s.plan()
		s.expect("restore")
	}
}

func TestRemovedAfterGraceAndConfirmation(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.plan()
	s.pass(s.p.Grace - 1)
	s.expect()
	s.pass(1)
	s.expect("confirm")
	s.w.Confirmed[web] = s.w.Now
	s.plan()
	s.expect("remove")
	s.plan()
	if len(s.states) != 0 {
		t.Fatalf("states are left: %v", s.states)
	}
}

func TestActiveCheckpointIsRemovedOnlyWhenItHasStopped(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.plan()
	s.pass(s.p.Grace)
	s.expect("confirm")
	s.w.Confirmed[web] = s.w.Now
	s.plan()
	s.expect("withdraw")
	s.phase(web, Removing, ReasonRemovalStopping)
	s.pass(time.Hour)
	s.expect()
	s.kubeletRunsStatic()
	s.plan()
	s.pass(s.p.Confirm - 1)
	s.expect()
	s.pass(1)
	s.expect("remove")
}

func TestRemovalOfTheOnlyAPIServerBringsItBackAndKeepsIt(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	s.plan()
	s.pass(s.p.Grace)
	s.w.Confirmed[web] = s.w.Now
	s.plan()
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.api(APILost)
	s.plan()
	s.pass(s.p.Settle)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.api(APIServing)
	s.plan()
	s.pass(24 * time.Hour)
	s.expect() // one gap, then none
}

func TestGraceStartsAgainWhenTheAPIServerGoes(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.plan()
	s.pass(s.p.Grace - 1)
	s.api(APIFailing)
	s.plan()
	s.api(APIServing)
	s.plan()
	s.pass(s.p.Grace - 1)
	s.expect()
	s.pass(1)
	s.expect("confirm")
}

func TestOldConfirmationDoesNotCount(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.w.Confirmed[web] = s.w.Now
	s.plan()
	s.pass(s.p.Grace)
	s.expect("confirm")
}

func TestOwnManifestIsActiveWhileTheParentRuns(t *testing.T) {
	s := newStory(t).healthy()
	s.p.Self = selfLin
	s.parent(selfLin, selfUID)
	s.runs(selfUID)
	s.plan()
	s.expect("save")
	s.plan()
	s.expect("activate")
	s.phase(selfLin, Active, ReasonSelf)
}

func TestUnscheduledCheckpointerRemovesEverythingAndItselfLast(t *testing.T) {
	s := newStory(t).healthy()
	s.p.Self = selfLin
	s.parent(web, webUID)
	s.runs(webUID)
	s.stored(web, webUID)
	s.stored(selfLin, selfUID).Active = Intact
	s.kubeletRunsStatic()
	s.plan()
	s.pass(s.p.Grace)
	s.expect("confirm")
	s.w.Confirmed[selfLin] = s.w.Now
	s.plan()
	s.expect("remove")
	s.plan()
	s.expect("withdraw", "remove") // at once: the kubelet ends us now
	s.pass(time.Hour)
	s.expect() // though the parents are still there
}

func TestRotatedSecretIsSavedAtOnce(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	s.parent(web, webUID).Digest = "another"
	s.plan()
	s.expect("save")
}

func TestRotatedSecretReachesAnActiveCheckpoint(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	p := s.parent(web, webUID)
	p.Digest = "another"
	s.plan()
	s.expect("save")
	s.phase(web, Active, ReasonParentAbsent)
	p.Digest, p.Manifest = "a third", "another manifest"
	s.runs(webUID)
	s.plan()
	s.expect("withdraw") // the manifest of what runs is not changed
}

func TestChangedPodIsSavedWhenItIsReady(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID)
	p := s.parent(web, webUID)
	p.Digest, p.Manifest = "another", "another manifest"
	s.container(webUID, ContainerRunning)
	s.w.Managed[webUID] = Managed{}
	s.plan()
	s.expect()
	s.w.Managed[webUID] = Managed{Ready: true}
	s.plan()
	s.expect("save")
}
