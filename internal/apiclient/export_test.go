package apiclient

import (
	"context"
	"testing"
)

// FakeServer is the fake for tests that import what imports this package.
type FakeServer struct{ *site }

func NewFakeServer(t *testing.T) FakeServer {
	t.Helper()
	return FakeServer{newSite(t)}
}

func (f FakeServer) Kubeconfig() string { return f.path }
func (f FakeServer) NodeName() string   { return node }

func (f FakeServer) CreateParent(_ context.Context, name string) error {
	f.api.put(pod(name, asksForCheckpoint))
	return nil
}

func (f FakeServer) CreateOther(_ context.Context, name string) error {
	f.api.put(pod(name, nil))
	return nil
}

func (f FakeServer) DeletePod(_ context.Context, name string) error {
	f.api.remove(name)
	return nil
}

func (f FakeServer) Start(context.Context) error {
	f.server.start()
	return nil
}

func (f FakeServer) Kill(context.Context) error {
	f.server.kill()
	return nil
}

func (f FakeServer) Pause() error {
	f.cable.die()
	return nil
}

func (f FakeServer) Resume() error {
	f.cable.revive()
	return nil
}
