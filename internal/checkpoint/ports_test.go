package checkpoint

import (
	"testing"
	"time"
)

const proxy Lineage = "default/DaemonSet/proxy"

// rivals are two stored checkpoints that take one port; that of proxy is newer.
func rivals(t *testing.T) *story {
	s := newStory(t)
	for _, of := range []Lineage{web, proxy} {
		c := s.stored(of, UID(of))
		c.Handover, c.HostPorts, c.Ports = HandoverCreated, true, []Port{"80/TCP"}
		s.w.Now = s.w.Now.Add(time.Second)
	}
	s.w.Start = s.w.Now
	return s
}

func TestNewerOfTwoThatTakeOnePortIsActivated(t *testing.T) {
	s := rivals(t)
	s.powerCut()
	s.expect("activate")
	s.phase(proxy, Active, ReasonParentAbsent)
	s.phase(web, Stored, ReasonPortTaken)
	s.kubeletRunsStatic()
	s.plan()
	s.pass(time.Hour)
	s.expect()
}

func TestActiveCheckpointIsNotOustedByANewerOneThatIsOnlyStored(t *testing.T) {
	s := rivals(t)
	s.w.Disk.Checkpoints[0].Active = Intact
	s.powerCut()
	s.kubeletRunsStatic()
	s.plan()
	s.expect()
	s.phase(web, Active, ReasonParentAbsent)
	s.phase(proxy, Stored, ReasonPortTaken)
}

func TestPodThatNeedsThePortOustsTheCheckpointOfOneThatIsGone(t *testing.T) {
	s := rivals(t)
	s.w.Disk.Checkpoints[0].Active = Intact
	s.powerCut()
	s.kubeletRunsStatic()
	s.healthy()
	p := s.parent(proxy, UID(proxy))
	p.Handover, p.Ports = HandoverCreated, []Port{"80/TCP"}
	s.w.Managed[UID(proxy)] = Managed{}
	s.plan()
	s.expect()
	s.container(UID(proxy), ContainerExited)
	s.plan()
	s.expect("withdraw")
	s.phase(web, Leaving, ReasonParentGone)
}

func TestPortsClashOnlyAtOneAddress(t *testing.T) {
	for _, c := range []struct {
		a, b Port
		want bool
	}{
		{"80/TCP", "80/TCP", true},
		{"80/TCP", "80/UDP", false},
		{"80/TCP", "81/TCP", false},
		{"127.0.0.1:80/TCP", "80/TCP", true},
		{"127.0.0.1:80/TCP", "127.0.0.2:80/TCP", false},
		{"[::1]:80/TCP", "[::1]:80/TCP", true},
	} {
		if a, b := c.a.clashes(c.b), c.b.clashes(c.a); a != c.want || b != c.want {
			t.Errorf("%s and %s: %v, %v, want %v", c.a, c.b, a, b, c.want)
		}
	}
}

// A pod that the API server does not tell of holds the port, so that the other lineage's crashes: nobody gains by a checkpoint.
func TestCheckpointIsNotActivatedOnlyToBeWithdrawnForItsPort(t *testing.T) {
	s := newStory(t).healthy()
	s.stored(web, webUID).Ports = []Port{"53/UDP"}
	other := s.parent("other", "other-uid")
	other.Ports = []Port{"53/UDP"}
	s.w.Managed["other-uid"] = Managed{}
	s.container("other-uid", ContainerExited)
	s.plan()
	s.api(APIRefusing)
	s.plan()
	s.pass(time.Hour)
	s.expect()
	s.phase(web, Stored, ReasonPortTaken)
}
