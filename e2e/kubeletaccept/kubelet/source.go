package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// start starts the file source of the Kubernetes version that this module is built with. Those of older ones are in
// ../kubelets/source.
func start(ctx context.Context, logger klog.Logger, dir string, nodeName types.NodeName) <-chan kubetypes.PodUpdate {
	podConfig := config.NewPodConfig(record.NewFakeRecorder(0), observer{})
	config.NewSourceFile(logger, dir, nodeName, never, podConfig.Channel(ctx, "file"))
	return podConfig.Updates()
}

type observer struct{}

func (observer) ObservedPodOnWatch(klog.Logger, *corev1.Pod, time.Time) {}
