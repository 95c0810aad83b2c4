package apiclient_test

import (
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/sourcetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sourcetest.TestAPIServer(t, apiclient.NewFakeServer(t))
}
