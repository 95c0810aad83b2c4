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

// dial makes a client of a local socket, given as unix:///path. It does not connect yet.
func dial(endpoint string) (*grpc.ClientConn, error) {
	return grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
}

// newBackoff gives the time between two tries of a socket that is not there, up to longest.
func newBackoff(longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(longest), backoff.WithMaxElapsedTime(0))
}

// pause waits for d, or less if it is woken or ctx ends.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
}
