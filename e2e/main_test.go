package e2e

import (
	"os"
	"testing"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// TestMain has no build constraint: where the tests can't run, somebody must say so.
func TestMain(m *testing.M) { lab.Main(m, lab.BuildCheckpointer) }

// thorough is whether everything runs (make e2e-all), rather than the selection that fits half an hour.
func thorough() bool { return os.Getenv("E2E_ALL") != "" }

// onlyInAll leaves a long test to make e2e-all.
func onlyInAll(t *testing.T) {
	t.Helper()
	if !thorough() {
		t.Skip("NOT RUN: it is long, and for make e2e-all")
	}
}
