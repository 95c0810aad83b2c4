package apiclient

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

const (
	// answerTimeout is how long a server may take to begin an answer. One that hangs is as good as lost.
	answerTimeout = 8 * time.Second

	podsPath  = "/api/v1/pods"
	readyPath = "/readyz"
)

var (
	errNotServing = errors.New("the API server does not serve us")
	errNoAnswer   = fmt.Errorf("no answer within %v", answerTimeout)
)

func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext
}

// observe sees how every request for our own pods ends: in an error of the connection, in an answer, or later in the
// middle of a watch. client-go's own WatchErrorHandler is not told of a refused connection.
func (c *Client) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.URL.Path != podsPath && request.URL.Path != readyPath {
			return next.RoundTrip(request)
		}
		ctx, cancel := context.WithCancelCause(request.Context())
		deadline := time.AfterFunc(answerTimeout, func() { cancel(errNoAnswer) })
		response, err := next.RoundTrip(request.WithContext(ctx))
		deadline.Stop()
		if err != nil {
			if errors.Is(context.Cause(ctx), errNoAnswer) {
				err = errNoAnswer
			}
			cancel(err)
			if request.Context().Err() == nil || errors.Is(err, errNoAnswer) {
				c.observed(classify(err), err.Error())
			}
			return nil, err
		}
		if state := classifyCode(response.StatusCode); state != checkpoint.APIServing || request.URL.Path == podsPath {
			c.observed(state, response.Status)
		}
		response.Body = &body{ReadCloser: response.Body, broke: func(err error) {
			if request.Context().Err() == nil {
				c.observed(classify(err), err.Error())
			}
		}, done: func() { cancel(nil) }}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body tells when the connection breaks in the middle of an answer, as that of a watch does.
type body struct {
	io.ReadCloser
	broke func(error)
	done  func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.broke(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

func classifyCode(code int) checkpoint.API {
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return checkpoint.APIRefusing
	case code == http.StatusTooManyRequests || code >= 500:
		return checkpoint.APIFailing
	default:
		return checkpoint.APIServing // also 4xx such as 410 Gone: it speaks with us
	}
}

// classify tells an answer that we don't like from none.
func classify(err error) checkpoint.API {
	var (
		status    apierrors.APIStatus
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		hostname  x509.HostnameError
	)
	switch {
	case err == nil:
		return checkpoint.APIServing
	case errors.As(err, &status):
		return classifyCode(int(status.Status().Code))
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &hostname),
		strings.Contains(err.Error(), "remote error: tls:"): // an alert of the other side, which crypto/tls does not export
		return checkpoint.APIRefusing
	default:
		return checkpoint.APILost
	}
}
