package apiclient

import (
	"bytes"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// client-go reads how soon a silent HTTP/2 connection is given up from the environment only, when a transport is made
// (k8s.io/apimachinery/pkg/util/net.SetTransportDefaults). Its own 30 s and 15 s would hide a hung server for too long.
var pings = map[string]string{
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
	"HTTP2_PING_TIMEOUT_SECONDS":      "3",
}

// load makes the REST client from the kubeconfig as it is now.
func (c *Client) load() error {
	path := c.config.Kubeconfig
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("no usable kubeconfig at %s, which is where the node's own credential is expected; --kubeconfig names another: %w", path, err)
	}
	client, err := c.clientFor(path)
	if err != nil {
		return fmt.Errorf("the kubeconfig %s can't be used; --kubeconfig names another: %w", path, err)
	}
	c.mu.Lock()
	c.rest, c.kubeconfig = client, data
	c.mu.Unlock()
	return nil
}

// clientFor reads the file by its path, because the certificates in it may be relative to it.
func (c *Client) clientFor(path string) (*rest.RESTClient, error) {
	for name, value := range pings {
		if _, set := os.LookupEnv(name); !set {
			if err := os.Setenv(name, value); err != nil {
				return nil, err
			}
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.APIPath = "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	config.UserAgent = "pod-checkpointer"
	config.QPS, config.Burst = 20, 50
	config.Dial = dialer(3 * time.Second)
	config.Wrap(c.observe)
	return rest.RESTClientFor(config)
}

// reload takes up a kubeconfig that was replaced. Certificate files that it names are read again by client-go itself.
func (c *Client) reload() {
	data, err := os.ReadFile(c.config.Kubeconfig)
	c.mu.Lock()
	same := err == nil && bytes.Equal(data, c.kubeconfig)
	c.mu.Unlock()
	if same {
		return
	}
	if err = c.load(); err != nil {
		c.log.Debug().Err(err).Msg("the kubeconfig is unusable: the one before is used")
		return
	}
	c.log.Info().Str("kubeconfig", c.config.Kubeconfig).Msg("kubeconfig was replaced and is used")
}

func (c *Client) client() *rest.RESTClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest
}
