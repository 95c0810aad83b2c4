package kubelet

import (
	"slices"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// restarted lets a container of the pod exit; runs: another of its name runs since.
func (f *fakeRuntime) restarted(id, container string, runs bool) {
	f.containers[container].State = cri.ContainerState_CONTAINER_EXITED
	if runs {
		f.containers[container+"-again"] = &cri.Container{
			Id: container + "-again", PodSandboxId: id, CreatedAt: 1000, State: cri.ContainerState_CONTAINER_RUNNING,
			Metadata: f.containers[container].Metadata,
		}
	}
}

func TestKickRemovesWhatHasExitedThenStopsTheSandbox(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 3, nil)
	m.fake.run("b", 1, nil)
	m.fake.restarted("a", "a-c0", false)
	m.fake.restarted("a", "a-c2", true)
	m.fake.restarted("b", "b-c0", false) // is nobody's business
	m.start(t)
	m.watch(t)
	m.awaitReady(t, "a", "b")
	must(t, m.Kick(t.Context(), "a"))
	m.awaitReady(t, "b")
	slices.Sort(m.fake.writes[:2])
	if want := []string{"remove a-c0", "remove a-c2", "stop a"}; !slices.Equal(m.fake.writes, want) {
		t.Errorf("the runtime was told %v, want %v", m.fake.writes, want)
	}
}

// TestKickComesTooLate: the kubelet has started again what had exited.
func TestKickComesTooLate(t *testing.T) {
	m := newMachine(t)
	m.fake.run("a", 2, nil)
	m.fake.restarted("a", "a-c0", true)
	m.start(t)
	must(t, m.Kick(t.Context(), "a"))
	must(t, m.Kick(t.Context(), "gone"))
	if len(m.fake.writes) > 0 {
		t.Errorf("the runtime was told %v, want nothing", m.fake.writes)
	}
}

func TestWritesToARuntimeThatHangsEnd(t *testing.T) {
	m := newMachine(t)
	m.timeout = 50 * time.Millisecond
	m.fake.run("a", 1, nil)
	m.fake.restarted("a", "a-c0", false)
	if m.StopSandbox(t.Context(), "a") == nil || m.Kick(t.Context(), "a") == nil {
		t.Error("a runtime that is not there is no error")
	}
	m.fake.hang = true
	m.start(t)
	if m.StopSandbox(t.Context(), "a") == nil || m.Kick(t.Context(), "a") == nil {
		t.Error("a runtime that hangs is no error")
	}
	if len(m.fake.writes) > 0 {
		t.Errorf("the runtime was told %v", m.fake.writes)
	}
}
