package kubelet

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v4"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxMessage is the kubelet's own limit for an answer of the runtime: k8s.io/cri-client/pkg.maxMsgSize.
const maxMessage = 16 << 20

const (
	// longestWait is the longest time between two looks at what can't be watched.
	longestWait = 10 * time.Second
	// longestGone is that between two tries of a container runtime that is gone: until it is back, nothing is activated.
	longestGone = 2 * time.Second
)

// answerTimeout is how long the kubelet may take to tell what it manages.
const answerTimeout = 10 * time.Second

// dial makes a client of a local socket, given as unix:///path. It does not connect yet.
func dial(endpoint string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))...)
}

func newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(longestWait), backoff.WithMaxElapsedTime(0),
	)
}

// pause waits for d, or less if it is woken or ctx ends. It says whether it was woken.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return false
	case <-wake:
		return true
	}
}
