package checkpoint

import (
	"slices"
	"testing"
	"time"
)

func TestRejectedManifestIsTriedAgain(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).HostPorts = true
	s.powerCut()
	s.expect("activate")
	s.pass(s.p.RejectedAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("retry")
	s.pass(2*s.p.RejectedAfter - 1)
	s.expect()
	s.pass(1)
	s.expect("retry")
	s.kubeletRunsStatic()
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

func TestManifestIsNotTriedAgainWhileTheKubeletIsNotHeard(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).Active = Intact
	s.w.Runtime = RuntimeKnown
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

// A pod on the pod network has no sandbox before that is ready; to change its manifest then would strand it.
func TestManifestIsNotTriedAgainWhileThePodNetworkMayBeAwaited(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID)
	s.stored("other", "other-uid")
	s.powerCut()
	s.pass(time.Hour)
	s.expect()
	s.kubeletRunsStatic()
	s.w.Sandboxes = slices.DeleteFunc(s.w.Sandboxes, func(b Sandbox) bool { return b.CheckpointOf != "other-uid" })
	s.plan()
	s.pass(s.p.RejectedAfter)
	s.expect("retry")
}

func TestSandboxFromBeforeAPowerCutDoesNotHideARejection(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).HostPorts = true
	s.powerCut()
	s.kubeletRunsStatic()
	before := s.w.Sandboxes[0]
	before.Ready = false
	s.pass(time.Hour)
	s.powerCut()
	s.w.Sandboxes = []Sandbox{before} // containerd lists it after the boot too, and the kubelet rejects the manifest
	s.plan()
	s.pass(s.p.RejectedAfter)
	s.expect("retry")
}

func TestKubeletThatIsBusyStartingOthersIgnoresNothing(t *testing.T) {
	s := newStory(t)
	s.stored(web, webUID).HostPorts = true
	s.powerCut()
	s.expect("activate")
	for range 10 {
		s.w.Sandboxes = append(s.w.Sandboxes, Sandbox{ID: s.w.Now.String(), UID: "another", FromFile: true, Ready: true, Created: s.w.Now})
		s.plan()
		s.pass(s.p.RejectedAfter - 1)
		s.expect()
	}
	s.pass(1)
	s.expect("retry")
}
