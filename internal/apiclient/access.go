package apiclient

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// How long the server may be silent, in each way of being silent, before it counts as lost. client-go's own limits add
// up to 45 s and more.
const (
	connectTimeout   = 3 * time.Second // no answer to the first packet
	handshakeTimeout = 5 * time.Second // a listening port, and nobody behind it
	answerTimeout    = 8 * time.Second // a request that is not answered
	pingAfter        = 4 * time.Second // an open connection on which nothing is said
	pingTimeout      = 3 * time.Second
)

// access is a way to the server, made of what the kubeconfig and the files that it names held at one time.
type access struct {
	watching  *rest.RESTClient // its requests tell how the server answers
	reading   *rest.RESTClient
	transport *http.Transport
	digest    [sha256.Size]byte // of those files
}

// open makes an access of the files as they are now.
func (c *Client) open() (*access, error) {
	config, digest, err := readKubeconfig(c.config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	opened := &access{digest: digest}
	if opened.transport, err = transportFor(config); err == nil {
		opened.reading, err = clientFor(config, opened.transport)
	}
	if err == nil {
		opened.watching, err = clientFor(config, c.observe(opened.transport))
	}
	if err != nil {
		return nil, unusable(c.config.Kubeconfig, err)
	}
	return opened, nil
}

// readKubeconfig reads a kubeconfig with all that it names, and what would tell a later change of any of it.
func readKubeconfig(path string) (config *rest.Config, digest [sha256.Size]byte, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, digest, fmt.Errorf("no usable kubeconfig at %s, which is where the node's own credential is expected; --kubeconfig names another: %w", path, err)
	}
	config, err = clientcmd.BuildConfigFromFlags("", path) // by its path, because the files that it names may be relative to it
	if err == nil {
		err = inline(&config.TLSClientConfig)
	}
	if err != nil {
		return nil, digest, unusable(path, err)
	}
	tls := config.TLSClientConfig
	return config, sha256.Sum256(bytes.Join([][]byte{data, tls.CAData, tls.CertData, tls.KeyData}, nil)), nil
}

func unusable(path string, err error) error {
	return fmt.Errorf("the kubeconfig %s can't be used; --kubeconfig names another: %w", path, err)
}

// inline reads the files that a kubeconfig names, so that a later change of one can be told. client-go would look at
// some of them again itself, but only every five minutes, and it would go on using its connection.
func inline(tls *rest.TLSClientConfig) error {
	for _, named := range []struct {
		file *string
		data *[]byte
	}{{&tls.CAFile, &tls.CAData}, {&tls.CertFile, &tls.CertData}, {&tls.KeyFile, &tls.KeyData}} {
		if *named.file == "" || len(*named.data) > 0 {
			continue
		}
		data, err := os.ReadFile(*named.file)
		if err != nil {
			return err
		}
		if len(data) == 0 { // without data, and without the name, the system's authorities would be trusted
			return fmt.Errorf("%s is empty", *named.file)
		}
		*named.file, *named.data = "", data
	}
	return nil
}

func transportFor(config *rest.Config) (*http.Transport, error) {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := http.ProxyFromEnvironment
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	// HTTP/1 has no pings: there the kernel's do, as far as the kernel of the other side goes.
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: time.Second, Count: 3}
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext,
		TLSClientConfig:       tls,
		TLSHandshakeTimeout:   handshakeTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true, // not by itself with a TLS configuration of ours
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}, nil
}

func clientFor(config *rest.Config, transport http.RoundTripper) (*rest.RESTClient, error) {
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.APIPath = "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "pod-checkpointer"
	config.QPS, config.Burst = 20, 50
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		return nil, err
	}
	return rest.RESTClientForConfigAndClient(config, &http.Client{Transport: wrapped})
}

// refresh takes up a kubeconfig, or a certificate that it names, that was replaced on disk. It says whether one was.
func (c *Client) refresh() bool {
	c.mu.Lock()
	before := c.access
	c.mu.Unlock()
	_, digest, err := readKubeconfig(c.config.Kubeconfig)
	if err == nil && digest == before.digest {
		return false
	}
	opened, err := c.open()
	if err != nil {
		c.log.Debug().Err(err).Msg("credentials on disk are unusable: those before are used")
		return false
	}
	c.mu.Lock()
	c.access = opened
	c.mu.Unlock()
	before.transport.CloseIdleConnections()
	c.log.Info().Str("kubeconfig", c.config.Kubeconfig).Msg("credentials were replaced on disk and are used")
	return true
}

func (c *Client) watching() *rest.RESTClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access.watching
}

func (c *Client) reading() *rest.RESTClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access.reading
}
