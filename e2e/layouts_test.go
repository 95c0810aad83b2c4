//go:build linux

package e2e

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

const k3sAgent = "/var/lib/rancher/k3s/agent"

// TestK3sLayout runs the overlay for k3s through a power cut, on a node that has its files and its runtime's socket where k3s
// has them. The programs are the lab's.
func TestK3sLayout(t *testing.T) {
	onlyInAll(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSiteWith(ctx, t, site.Options{
		Kustomization: "../deploy/overlays/k3s",
		Before:        func(context.Context, *site.Site) error { return k3sLayout() },
	})
	t.Cleanup(func() { // before the site is closed
		for _, dir := range []string{"/run/k3s/containerd", k3sAgent + "/pod-manifests", k3sAgent} {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmount %s: %v", dir, err)
			}
		}
	})
	before := s.testimonies(ctx, s.Web)
	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("the runtime's directory is made again", bindRuntime())
	s.step("power is on", s.PowerOn(ctx))
	after := s.testimonies(ctx, site.Static(s.Web))
	s.same(before.web, after.web)
	s.same(before.gateway, after.gateway)
	apiServerReturns(ctx, s, before)
}

// k3sLayout shows the node's directories in the places of k3s too.
func k3sLayout() error {
	kubeconfig, err := os.ReadFile(lab.KubeletKubeconfig)
	return errors.Join(
		err,
		bindRuntime(),
		bind("/etc/kubernetes", k3sAgent),
		bind(lab.Manifests, k3sAgent+"/pod-manifests"),
		os.WriteFile(k3sAgent+"/kubelet.kubeconfig", kubeconfig, 0o600),
	)
}

func bindRuntime() error { return bind("/run/containerd", "/run/k3s/containerd") }

func bind(from, to string) error {
	return errors.Join(os.MkdirAll(from, 0o755), os.MkdirAll(to, 0o755), syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""))
}
