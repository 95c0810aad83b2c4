// Package pki makes the certificates of a cluster, in the files and with the
// names that kubeadm gives them.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Certificate, Key []byte
}

// Subject says whom a certificate is for. One with addresses serves, one
// without is a client's.
type Subject struct {
	Name          string
	Organizations []string
	// Addresses are IP addresses or DNS names.
	Addresses []string
	// ValidFrom is an hour ago when zero.
	ValidFrom time.Time
	// Lifetime counts from now, and is 24 h when zero.
	Lifetime time.Duration
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := newTemplate(Subject{Name: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{certificate, key}, nil
}

// ReadAuthority reads what Pair.WriteTo wrote of an authority's Pair.
func ReadAuthority(dir, name string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s/%s.key is a %T", dir, name, pair.PrivateKey)
	}
	return &Authority{pair.Leaf, key}, nil
}

// Pair is the authority's own certificate and key.
func (a *Authority) Pair() (Pair, error) { return encode(a.certificate.Raw, a.key) }

// Issue signs a certificate for a new key.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template := newTemplate(s)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.Addresses) > 0 {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(der, key)
}

// WriteTo writes dir/name.crt and dir/name.key.
func (p Pair) WriteTo(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.Certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".key"), p.Key, 0o600)
}

// Joined is the certificate and the key in one file, as the kubelet keeps them.
func (p Pair) Joined() []byte { return bytes.Join([][]byte{p.Certificate, p.Key}, nil) }

// NewSigningKey makes the key pair that signs service account tokens. Its
// Certificate is a bare public key.
func NewSigningKey() (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return Pair{}, err
	}
	pair, err := encode(nil, key)
	pair.Certificate = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	return pair, err
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// newTemplate starts an hour ago, for tests that move the clock a little.
func newTemplate(s Subject) *x509.Certificate {
	if s.Lifetime == 0 {
		s.Lifetime = 24 * time.Hour
	}
	now := time.Now()
	if s.ValidFrom.IsZero() {
		s.ValidFrom = now.Add(-time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: s.Name, Organization: s.Organizations},
		NotBefore:    s.ValidFrom,
		NotAfter:     now.Add(s.Lifetime),
	}
	for _, address := range s.Addresses {
		if ip := net.ParseIP(address); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, address)
		}
	}
	return template
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key: %w", err)
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}
