//go:build linux

package lab

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The kubelet's labels (pkg/kubelet/types/labels.go).
const (
	labelPodName       = "io.kubernetes.pod.name"
	labelPodNamespace  = "io.kubernetes.pod.namespace"
	labelContainerName = "io.kubernetes.container.name"
)

// Sandboxes are all pod sandboxes that containerd knows, also dead ones, with
// the pods' labels and annotations.
func (n *Node) Sandboxes(ctx context.Context) ([]*runtime.PodSandbox, error) {
	return withCRI(func(c *grpc.ClientConn) ([]*runtime.PodSandbox, error) {
		r, err := runtime.NewRuntimeServiceClient(c).ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{})
		return r.GetItems(), err
	})
}

// Containers are all containers that containerd knows, also dead ones.
func (n *Node) Containers(ctx context.Context) ([]*runtime.Container, error) {
	return withCRI(func(c *grpc.ClientConn) ([]*runtime.Container, error) {
		r, err := runtime.NewRuntimeServiceClient(c).ListContainers(ctx, &runtime.ListContainersRequest{})
		return r.GetContainers(), err
	})
}

// RunningContainer is the running container of a pod; an error when there's
// none. It works without the API server. A static pod's name ends with the
// node's.
func (n *Node) RunningContainer(ctx context.Context, namespace, pod, container string) (*runtime.Container, error) {
	all, err := n.Containers(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.State == runtime.ContainerState_CONTAINER_RUNNING && c.Labels[labelPodNamespace] == namespace &&
			c.Labels[labelPodName] == pod && c.Labels[labelContainerName] == container {
			return c, nil
		}
	}
	return nil, fmt.Errorf("container %s of %s/%s doesn't run", container, namespace, pod)
}

// EndContainer kills a container's process.
func (n *Node) EndContainer(ctx context.Context, c *runtime.Container) error {
	_, err := withCRI(func(conn *grpc.ClientConn) (*runtime.StopContainerResponse, error) {
		return runtime.NewRuntimeServiceClient(conn).StopContainer(ctx, &runtime.StopContainerRequest{ContainerId: c.Id})
	})
	return err
}

// KillContainer kills the process of the running container of a pod.
func (n *Node) KillContainer(ctx context.Context, namespace, pod, container string) error {
	c, err := n.RunningContainer(ctx, namespace, pod, container)
	if err != nil {
		return err
	}
	return n.EndContainer(ctx, c)
}

// PodIP is the address of a pod's ready sandbox; empty with host network.
func (n *Node) PodIP(ctx context.Context, namespace, pod string) (string, error) {
	all, err := n.Sandboxes(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.State != runtime.PodSandboxState_SANDBOX_READY || s.Metadata.Namespace != namespace || s.Metadata.Name != pod {
			continue
		}
		return withCRI(func(c *grpc.ClientConn) (string, error) {
			r, err := runtime.NewRuntimeServiceClient(c).PodSandboxStatus(ctx, &runtime.PodSandboxStatusRequest{PodSandboxId: s.Id})
			return r.GetStatus().GetNetwork().GetIp(), err
		})
	}
	return "", fmt.Errorf("no ready sandbox of %s/%s", namespace, pod)
}

func (n *Node) containerdReady(ctx context.Context) error {
	_, err := withCRI(func(c *grpc.ClientConn) (*runtime.StatusResponse, error) {
		return runtime.NewRuntimeServiceClient(c).Status(ctx, &runtime.StatusRequest{})
	})
	return err
}

func hasImage(ctx context.Context, name string) error {
	r, err := withCRI(func(c *grpc.ClientConn) (*runtime.ImageStatusResponse, error) {
		return runtime.NewImageServiceClient(c).ImageStatus(ctx, &runtime.ImageStatusRequest{Image: &runtime.ImageSpec{Image: name}})
	})
	if err == nil && r.GetImage() == nil {
		return fmt.Errorf("the runtime doesn't know it")
	}
	return err
}

// withCRI connects anew each time: a connection that lives through a power cut
// would sit in gRPC's back-off.
func withCRI[T any](call func(*grpc.ClientConn) (T, error)) (T, error) {
	c, err := grpc.NewClient("unix://"+ContainerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		var none T
		return none, err
	}
	defer c.Close()
	return call(c)
}
