//go:build !linux

package lab

import (
	"errors"
	"testing"
)

// Main says that the tests need Linux, and exits.
func Main(*testing.M) { notRun(errors.New("namespaces, mounts and cgroups need Linux")) }
