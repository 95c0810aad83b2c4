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
				return &s.certified, nil
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

// cable carries connections to a server, and can be cut or go dead.
type cable struct {
	listener net.Listener
	mu       sync.Mutex
	dead     chan struct{} // nil unless nothing gets through
	open     map[net.Conn]bool
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{listener: listener, open: make(map[net.Conn]bool)}
	t.Cleanup(func() { listener.Close(); c.revive(); c.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(near, to)
		}
	}()
	return c
}

func (c *cable) addr() string { return c.listener.Addr().String() }

func (c *cable) carry(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	c.mu.Lock()
	c.open[near] = true
	c.mu.Unlock()
	go c.copy(far, near)
	c.copy(near, far)
	c.mu.Lock()
	delete(c.open, near)
	c.mu.Unlock()
}

func (c *cable) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			to.Close()
			return
		}
		c.mu.Lock()
		dead := c.dead
		c.mu.Unlock()
		if dead != nil {
			<-dead
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// die lets nothing through any more, and closes nothing.
func (c *cable) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = make(chan struct{})
}

func (c *cable) revive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		close(c.dead)
		c.dead = nil
	}
}

// cut breaks the connections that are open.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
}
