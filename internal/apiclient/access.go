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
	pingAfter        = 6 * time.Second // an open connection on which nothing is said: each ping is one more wake-up of an idle node
	pingTimeout      = 3 * time.Second
)

// access is a way to the server, made of what the kubeconfig and the files that it names held at one time.
type access struct {
	watching *rest.RESTClient // its requests tell how the server answers
	reading  *rest.RESTClient
	made     origin
}

// origin tells whether the files that an access was made of have changed.
type origin struct {
	files  []string
	digest [sha256.Size]byte // of their contents
}

// open makes an access of the files as they are now.
func (c *Client) open() (*access, error) {
	config, made, err := readKubeconfig(c.config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	transport, err := transportFor(config)
	if err != nil {
		return nil, unusable(c.config.Kubeconfig, err)
	}
	bounded := boundAnswers(transport)
	reading, err := clientFor(config, bounded)
	if err != nil {
		return nil, unusable(c.config.Kubeconfig, err)
	}
	watching, err := clientFor(config, c.observe(bounded))
	if err != nil {
		return nil, unusable(c.config.Kubeconfig, err)
	}
	return &access{watching: watching, reading: reading, made: made}, nil
}

// readKubeconfig reads a kubeconfig with all that it names. The files that it names are not read again later: client-go
// would look at some of them, but only every five minutes, and it would go on using its connection.
func readKubeconfig(path string) (*rest.Config, origin, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, origin{}, fmt.Errorf("no usable kubeconfig at %s, which is where the node's own credential is expected; --kubeconfig names another: %w", path, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path) // by its path, because the files that it names may be relative to it
	if err != nil {
		return nil, origin{}, unusable(path, err)
	}
	made, contents := origin{files: []string{path}}, [][]byte{data}
	for _, named := range []struct {
		file *string
		data *[]byte
	}{{&config.CAFile, &config.CAData}, {&config.CertFile, &config.CertData}, {&config.KeyFile, &config.KeyData}} {
		if *named.file == "" || len(*named.data) > 0 {
			continue
		}
		if data, err = os.ReadFile(*named.file); err != nil {
			return nil, origin{}, unusable(path, err)
		}
		if len(data) == 0 { // without data, and without the name, the system's authorities would be trusted
			return nil, origin{}, unusable(path, fmt.Errorf("%s is empty", *named.file))
		}
		made.files, contents = append(made.files, *named.file), append(contents, data)
		*named.file, *named.data = "", data
	}
	made.digest = digest(contents)
	return config, made, nil
}

func unusable(path string, err error) error {
	return fmt.Errorf("the kubeconfig %s can't be used; --kubeconfig names another: %w", path, err)
}

func digest(contents [][]byte) [sha256.Size]byte { return sha256.Sum256(bytes.Join(contents, nil)) }

// unchanged says whether the files are as they were. One that can't be read has changed.
func (o origin) unchanged() bool {
	contents := make([][]byte, len(o.files))
	for i, file := range o.files {
		data, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		contents[i] = data
	}
	return digest(contents) == o.digest
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
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: pingAfter + time.Second, Interval: time.Second, Count: 2}
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           (&net.Dialer{Timeout: connectTimeout, KeepAliveConfig: keepAlive}).DialContext,
		TLSClientConfig:       tls,
		TLSHandshakeTimeout:   handshakeTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       90 * time.Second, // of those made with credentials that were replaced since
		ForceAttemptHTTP2:     true,             // not by itself with a TLS configuration of ours
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
	if before.made.unchanged() {
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
