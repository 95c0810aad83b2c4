package e2e

import (
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// TestMain has no build constraint: where the tests can't run, somebody must say so.
func TestMain(m *testing.M) { lab.Main(m, lab.BuildCheckpointer) }
