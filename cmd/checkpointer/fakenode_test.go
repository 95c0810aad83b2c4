package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	podsv1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// fakeNode is a command of scripts: the sockets of a container runtime without containers, and of a kubelet that has not
// seen the API server since its start: fake-node RUNTIME-SOCKET KUBELET-DIR
func fakeNode() {
	api := filepath.Join(os.Args[2], "pods-api")
	check(os.MkdirAll(api, 0o700))
	check(os.MkdirAll(filepath.Join(os.Args[2], "pods"), 0o700))
	kubelet, runtime := grpc.NewServer(), grpc.NewServer()
	podsv1.RegisterPodsServer(kubelet, unsyncedKubelet{})
	cri.RegisterRuntimeServiceServer(runtime, emptyRuntime{})
	cri.RegisterImageServiceServer(runtime, fewImages{})
	go serve(kubelet, filepath.Join(api, "pods-api.sock"))
	serve(runtime, os.Args[1])
}

func serve(server *grpc.Server, socket string) {
	listener, err := net.Listen("unix", socket)
	check(err)
	check(server.Serve(listener))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake-node:", err)
		os.Exit(1)
	}
}

type unsyncedKubelet struct{ podsv1.UnimplementedPodsServer }

func (unsyncedKubelet) WatchPods(*podsv1.WatchPodsRequest, grpc.ServerStreamingServer[podsv1.WatchPodsEvent]) error {
	return status.Error(codes.FailedPrecondition, "fake: not synced")
}

type emptyRuntime struct {
	cri.UnimplementedRuntimeServiceServer
}

func (emptyRuntime) GetContainerEvents(_ *cri.GetEventsRequest, events grpc.ServerStreamingServer[cri.ContainerEventResponse]) error {
	<-events.Context().Done()
	return nil
}

func (emptyRuntime) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{}, nil
}

func (emptyRuntime) ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{}, nil
}

// fewImages has every image but those called absent.
type fewImages struct {
	cri.UnimplementedImageServiceServer
}

func (fewImages) ImageStatus(_ context.Context, asked *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	if strings.Contains(asked.Image.Image, "absent") {
		return &cri.ImageStatusResponse{}, nil
	}
	return &cri.ImageStatusResponse{Image: &cri.Image{Id: asked.Image.Image}}, nil
}
