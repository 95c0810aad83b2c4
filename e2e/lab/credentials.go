//go:build linux

package lab

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
)

// AdminKubeconfig is the path of the kubeconfig of system:masters, which goes through AdminAddress.
func (c *Cluster) AdminKubeconfig() string { return c.machine.elsewhere("admin.conf") }

// writeCredentials makes the authority, the servers' certificates and the
// kubeconfigs of everybody but the node.
func (c *Cluster) writeCredentials() error {
	var err error
	if c.ca, err = pki.NewAuthority("kubernetes"); err != nil {
		return err
	}
	authority, err := c.ca.Pair()
	if err != nil {
		return err
	}
	if err := authority.WriteTo(c.PKI(), "ca"); err != nil {
		return err
	}
	for file, subject := range map[string]pki.Subject{
		"apiserver": {Name: "kube-apiserver", Addresses: []string{
			APIAddress, AdminAddress, ClusterAddress, NodeAddress, ServiceAddress, "127.0.0.1", "localhost",
			"kubernetes", "kubernetes.default", "kubernetes.default.svc",
		}},
		"apiserver-kubelet-client": {Name: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}},
	} {
		pair, err := c.Issue(subject)
		if err != nil {
			return err
		}
		if err := pair.WriteTo(c.PKI(), file); err != nil {
			return err
		}
	}
	signing, err := pki.NewSigningKey()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.PKI(), "sa.pub"), signing.Certificate, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.PKI(), "sa.key"), signing.Key, 0o600); err != nil {
		return err
	}
	return c.writeKubeconfigs()
}

func (c *Cluster) writeKubeconfigs() error {
	for file, user := range map[string]struct {
		address string
		subject pki.Subject
	}{
		c.AdminKubeconfig():                            {AdminAddress, pki.Subject{Name: "admin", Organizations: []string{"system:masters"}}},
		c.machine.elsewhere("controller-manager.conf"): {APIAddress, pki.Subject{Name: "system:kube-controller-manager"}},
		c.machine.elsewhere("scheduler.conf"):          {APIAddress, pki.Subject{Name: "system:kube-scheduler"}},
	} {
		pair, err := c.Issue(user.subject)
		if err != nil {
			return err
		}
		credential := map[string]any{
			"client-certificate-data": base64.StdEncoding.EncodeToString(pair.Certificate),
			"client-key-data":         base64.StdEncoding.EncodeToString(pair.Key),
		}
		if err := c.writeKubeconfig(file, user.address, user.subject.Name, credential); err != nil {
			return err
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig as kubeadm does: the authority inline.
func (c *Cluster) writeKubeconfig(path, address, user string, credential map[string]any) error {
	authority, err := c.ca.Pair()
	if err != nil {
		return err
	}
	return writeYAML(path, map[string]any{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []any{map[string]any{"name": "kubernetes", "cluster": map[string]any{
			"server":                     "https://" + address + ":" + apiPort,
			"certificate-authority-data": base64.StdEncoding.EncodeToString(authority.Certificate),
		}}},
		"users": []any{map[string]any{"name": user, "user": credential}},
		"contexts": []any{map[string]any{"name": "default", "context": map[string]any{
			"cluster": "kubernetes", "user": user,
		}}},
		"current-context": "default",
	})
}

func writeYAML(path string, content any) error {
	data, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
