//go:build !linux

package lab

import (
	"context"
	"errors"
	"testing"
)

// Prepare is work that comes before the tests.
type Prepare func(context.Context) error

// BuildCheckpointer does nothing where the tests can't run.
func BuildCheckpointer(context.Context) error { return nil }

// Main says that the tests need Linux, and exits.
func Main(*testing.M, ...Prepare) {
	notRun(errors.New("namespaces, mounts and cgroups need Linux"))
}
