// Package kubelet lets the kubelet's own code judge static pod manifests.
package kubelet

import (
	"context"
	_ "embed" // for Code
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/capabilities"
)

// Code is this file, from which ../kubelets builds the same for other versions of Kubernetes.
//
//go:embed kubelet.go
var Code []byte

// never is a period that no test reaches: every source lists its directory once, when it starts.
const never = 1000 * time.Hour

// Verdicts is what the kubelet makes of a directory's files, by file name.
type Verdicts struct {
	Pods     []*corev1.Pod // accepted, as the kubelet decoded and defaulted them
	Rejected map[string]error
}

// Read lets the kubelet's file source read a static pod directory. The source's goroutines live until the process ends:
// the kubelet has no way to stop them either.
func Read(ctx context.Context, dir, nodeName string) (Verdicts, error) {
	// As cmd/kubelet does. Without it every privileged pod is rejected.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})

	var mutex sync.Mutex
	rejected := make(map[string]error)
	logger := funcr.NewJSON(func(string) {}, funcr.Options{})
	logger = logger.WithSink(&collector{LogSink: logger.GetSink(), rejected: func(path string, err error) {
		mutex.Lock()
		defer mutex.Unlock()
		rejected[filepath.Base(path)] = err
	}})
	updates := start(ctx, logger, dir, types.NodeName(nodeName))
	select {
	case update := <-updates:
		mutex.Lock()
		defer mutex.Unlock()
		return Verdicts{Pods: update.Pods, Rejected: rejected}, nil
	case <-ctx.Done():
		return Verdicts{}, fmt.Errorf("the kubelet's file source said nothing: %w", context.Cause(ctx))
	}
}

// collector takes from the kubelet's log which file it rejects and why: it tells nobody else.
type collector struct {
	klog.LogSink
	rejected func(path string, err error)
}

func (c *collector) Error(err error, message string, keysAndValues ...any) {
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		if keysAndValues[i] == "path" {
			if err == nil {
				err = errors.New(message)
			}
			c.rejected(fmt.Sprint(keysAndValues[i+1]), err)
		}
	}
}

// ParentName is the name that a manifest gave a static pod, without the node's, which the kubelet appends.
func ParentName(pod *corev1.Pod, nodeName string) string {
	return strings.TrimSuffix(pod.Name, "-"+strings.ToLower(nodeName))
}
