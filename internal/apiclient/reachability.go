package apiclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

const readyPath = "/readyz"

var errNotServing = errors.New("the API server does not serve us")

// observe sees how the requests for our own pods end, and those to /readyz: in an error of the connection, in an answer,
// or in silence in the middle of one. client-go's own WatchErrorHandler is not told of a refused connection. Of the
// answers to /readyz only a failure counts: whether the server serves us is not its business.
func (c *Client) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			if request.Context().Err() == nil {
				c.observed(classify(err), err.Error())
			}
			return nil, err
		}
		ready := strings.HasSuffix(request.URL.Path, readyPath) // a server may be reached below a path of its own
		if state := classifyCode(response.StatusCode); state != checkpoint.APIUnknown && (!ready || isFailure(response.StatusCode)) {
			c.observed(state, response.Status)
		}
		response.Body = &body{ReadCloser: response.Body, silent: func(err error) { c.observed(checkpoint.APILost, err.Error()) }}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// body tells when the server fell silent in the middle of an answer, as of that to a watch. A connection that breaks is
// another matter: whether the server is lost then, the next request tells, which is made at once.
type body struct {
	io.ReadCloser
	silent func(error)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && isPingTimeout(err) {
		b.silent(err)
	}
	return n, err
}

// maxAnswer is how much of one answer is read, in bytes: the pods of a full node have a few MB. A watch that tells more in
// its ten minutes is begun anew.
const maxAnswer = 32 << 20

// boundAnswers cuts what is longer.
func boundAnswers(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil {
			response.Body = &boundedBody{ReadCloser: response.Body, left: maxAnswer}
		}
		return response, err
	})
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func isFailure(code int) bool { return code == http.StatusTooManyRequests || code >= 500 }

// classifyCode says what an answer to the request for our pods shows. Unknown: nothing, it was about the request.
func classifyCode(code int) checkpoint.API {
	switch {
	case code >= 200 && code < 300:
		return checkpoint.APIServing
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return checkpoint.APIRefusing
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code == http.StatusGone:
		return checkpoint.APIUnknown // it has no WatchList, or the watch is from too long ago
	default:
		return checkpoint.APIFailing // also what is no API server: a load balancer's 404, a portal's redirect
	}
}

// classify tells a connection that is refused to us from none.
func classify(err error) checkpoint.API {
	var (
		certificate *tls.CertificateVerificationError
		connection  *net.OpError
	)
	switch {
	case errors.As(err, &certificate):
		return checkpoint.APIRefusing
	case errors.As(err, &connection) && connection.Op == "remote error": // crypto/tls: an alert, such as that our certificate is bad
		return checkpoint.APIRefusing
	default:
		return checkpoint.APILost
	}
}

// isPingTimeout knows the error of net/http for a connection on which a ping stayed unanswered. It has no type.
func isPingTimeout(err error) bool {
	return strings.HasSuffix(err.Error(), "http2: client connection lost")
}
