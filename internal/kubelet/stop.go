package kubelet

import (
	"context"
	"fmt"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What is in this file is all that the agent ever writes to the runtime.

// StopSandbox stops a sandbox and what runs in it.
func (r *Runtime) StopSandbox(ctx context.Context, id string) error {
	return r.write(ctx, func(ctx context.Context, client cri.RuntimeServiceClient) error { return stop(ctx, client, id) })
}

// Kick has the kubelet start the pod of a sandbox at once in which a container has exited, without its back-off of 10 s
// and more: that counts from what has exited, so this removes it, and stops the sandbox
// (k8s.io/kubernetes/pkg/kubelet/kuberuntime.kubeGenericRuntimeManager.doBackOff). If the kubelet was quicker, and has
// started again what had exited, nothing is done.
func (r *Runtime) Kick(ctx context.Context, id string) error {
	return r.write(ctx, func(ctx context.Context, client cri.RuntimeServiceClient) error {
		listed, err := client.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{PodSandboxId: id}})
		if err != nil {
			return fmt.Errorf("list the containers of sandbox %s: %w", id, err)
		}
		exited, down := exitedOf(listed.Containers)
		if !down {
			return nil
		}
		for _, container := range exited {
			if _, err := client.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: container}); err != nil {
				return fmt.Errorf("remove container %s, which has exited: %w", container, err)
			}
		}
		return stop(ctx, client, id)
	})
}

// exitedOf are the IDs of the containers that have exited. down: of some, there is none newer of the same name.
func exitedOf(containers []*cri.Container) (ids []string, down bool) {
	newest := make(map[string]*cri.Container)
	for _, c := range containers {
		if c.State == cri.ContainerState_CONTAINER_EXITED {
			ids = append(ids, c.Id)
		}
		name := c.GetMetadata().GetName()
		if before := newest[name]; before == nil || c.CreatedAt > before.CreatedAt {
			newest[name] = c
		}
	}
	for _, c := range newest {
		down = down || c.State == cri.ContainerState_CONTAINER_EXITED
	}
	return ids, down
}

func stop(ctx context.Context, client cri.RuntimeServiceClient, id string) error {
	if _, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", id, err)
	}
	return nil
}

// write makes calls over a connection of their own, which together may take as long as one.
func (r *Runtime) write(ctx context.Context, calls func(context.Context, cri.RuntimeServiceClient) error) error {
	conn, err := dial(r.endpoint)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return calls(ctx, cri.NewRuntimeServiceClient(conn))
}
