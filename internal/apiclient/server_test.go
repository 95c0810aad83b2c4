package apiclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.pem = a.sign(a.cert, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue makes a certificate for 127.0.0.1 and for any client, with its key in the same PEM data, as the kubelet keeps
// its own.
func (a *authority) issue(change ...func(*x509.Certificate)) []byte {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, c := range change {
		c(template)
	}
	key := newKey(a.t)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return append(a.sign(template, key), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})...)
}

func expired(c *x509.Certificate)     { c.NotAfter = time.Now().Add(-time.Minute) }
func ofOtherHost(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 2)} }

// server serves a handler over TLS, at one address over several lives.
type server struct {
	t         *testing.T
	handler   http.Handler
	clients   *authority
	addr      string
	mu        sync.Mutex
	certified tls.Certificate
	life      *http.Server
}

// newServer starts a server whose clients need a certificate of the authority, which signed its own, too.
func newServer(t *testing.T, handler http.Handler, a *authority) *server {
	t.Helper()
	s := &server{t: t, handler: handler, clients: a, addr: "127.0.0.1:0"}
	s.certify(a.issue())
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *server) certify(pem []byte) {
	s.t.Helper()
	certificate, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certified = certificate
}

func (s *server) start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = listener.Addr().String()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.clients.pem)
	s.life = &http.Server{
		Handler:  s.handler,
		ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				certificate := s.certified
				return &certificate, nil
			},
		},
	}
	go s.life.ServeTLS(listener, "", "")
}

// kill ends the server and its connections at once.
func (s *server) kill() { s.life.Close() }

// kubeconfig writes a kubeconfig that names the server, and files for the certificates, as kubeadm does.
func kubeconfig(t *testing.T, path, addr string, a *authority, client []byte) {
	t.Helper()
	current := filepath.Join(filepath.Dir(path), "client-current.pem")
	write(t, current, client)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + addr, CertificateAuthorityData: a.pem}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificate: current, ClientKey: current}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
