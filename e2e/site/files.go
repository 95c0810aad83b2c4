//go:build linux

package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// Where the checkpointer keeps what it keeps, by its defaults.
const (
	InactiveDir = "/etc/kubernetes/inactive-manifests"
	AssetsDir   = "/etc/kubernetes/checkpoint-assets"
)

// Static is the name that the kubelet gives to the static pod of a pod's checkpoint.
func Static(pod string) string { return pod + "-" + lab.NodeName }

// Stored is the path of a pod's stored manifest.
func Stored(pod string) string { return filepath.Join(InactiveDir, Namespace+"_"+pod+".json") }

// Active is the path of a pod's active manifest.
func Active(pod string) string { return filepath.Join(lab.Manifests, Namespace+"_"+pod+".json") }

// Assets is the directory of a pod's assets.
func Assets(pod string) string { return filepath.Join(AssetsDir, Namespace+"_"+pod) }

// Exists is an error if nothing is there.
func Exists(path string) error {
	_, err := os.Stat(path)
	return err
}

// Absent is an error unless nothing is there.
func Absent(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there (%v)", path, err)
	}
	return nil
}

// Soon bounds a wait for what should take a moment, so that a failure is not seen only when a whole run is out of time.
// A busy machine is given a lot.
func Soon(ctx context.Context, what string, check func(context.Context) error, logs ...*lab.Component) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return lab.Wait(ctx, what, check, logs...)
}
