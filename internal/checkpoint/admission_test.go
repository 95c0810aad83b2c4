package checkpoint

import (
	"testing"
	"time"
)

// declaring is a node after a power cut whose active checkpoint declares a host port, as its parent does.
func declaring(t *testing.T) *story {
	s := newStory(t)
	c := s.stored(web, webUID)
	c.Handover, c.HostPorts, c.DeclaresPorts, c.Ports = HandoverCreated, true, true, []Port{"80/TCP"}
	s.powerCut()
	s.kubeletRunsStatic()
	return s
}

// returns is the parent as the API server has it.
func (s *story) returns() *Parent {
	p := s.parent(web, webUID)
	p.Handover, p.Ports = HandoverCreated, []Port{"80/TCP"}
	return p
}

func TestCheckpointThatDeclaresAHostPortGoesBeforeTheKubeletHearsOfTheParent(t *testing.T) {
	s := declaring(t)
	for range 3 { // an API server that comes and goes
		s.api(APIServing)
		s.w.Parents = nil
		s.returns()
		s.plan()
		s.expect("withdraw")
		s.phase(web, Leaving, ReasonParentBlocked) // it runs on: the kubelet stops nothing before it has seen the API server
		s.pass(s.p.StuckAfter - 1)
		s.expect()
		s.api(APILost)
		s.plan()
		s.expect("activate")
		s.pass(time.Minute)
		s.expect()
	}
	s.api(APIServing)
	s.plan()
	s.kubelet(KubeletSynced)
	s.kubeletRunsStatic()
	s.runs(webUID)
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonParentUp)
}

// The kubelet may be cut off from the API server though we are not.
func TestKubeletThatNeverHearsOfTheParentGetsItsCheckpointBack(t *testing.T) {
	s := declaring(t)
	s.api(APIServing)
	s.returns()
	s.plan()
	s.w.Sandboxes = nil // and it fails
	s.plan()
	s.pass(s.p.StuckAfter + s.p.KubeletSync - 1)
	s.expect()
	s.pass(1)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Active, ReasonParentAbsent)
}

func TestRejectedParentIsMadeRoomForOnce(t *testing.T) {
	s := declaring(t).healthy()
	s.returns().Phase = PodEnded // the kubelet was faster
	s.plan()
	s.expect("withdraw")
	s.kubeletRunsStatic()
	s.plan()
	s.pass(s.p.StuckAfter - 1)
	s.expect() // its controller may make another
	s.pass(1)
	s.expect("activate")
	s.kubeletRunsStatic()
	s.pass(time.Hour)
	s.expect()
}
