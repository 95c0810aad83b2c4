package kubelet

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Inspection is a container runtime at one instant.
type Inspection struct {
	Sandboxes []checkpoint.Sandbox // by ID
	Missing   []string             // of the images that were asked for, those that it does not have
	// Plugins are the CNI plugins that it would call for a new pod, by their types; nil: it does not tell.
	Plugins []string
}

// Inspect asks the runtime at endpoint, as unix:///path, once.
func Inspect(ctx context.Context, endpoint string, images []string) (Inspection, error) {
	conn, err := dial(endpoint)
	if err != nil {
		return Inspection{}, err
	}
	defer conn.Close()
	r := &Runtime{endpoint: endpoint, timeout: longestWait, log: zerolog.Nop()}
	runtime, store := cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn)
	if err := r.listAll(ctx, runtime); err != nil {
		return Inspection{}, err
	}
	found := Inspection{Sandboxes: slices.SortedFunc(maps.Values(r.sandboxes), func(a, b checkpoint.Sandbox) int {
		return strings.Compare(a.ID, b.ID)
	})}
	for _, image := range images {
		answer, err := store.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: image}})
		if err != nil {
			return Inspection{}, err
		}
		if answer.GetImage() == nil {
			found.Missing = append(found.Missing, image)
		}
	}
	if answer, err := runtime.Status(ctx, &cri.StatusRequest{Verbose: true}); err == nil {
		found.Plugins = pluginsOf(answer.Info["cniconfig"])
	}
	return found, nil
}

// pluginsOf reads what containerd tells in a verbose Status (github.com/containerd/containerd/v2/internal/cri/server.
// criService.Status, github.com/containerd/go-cni.ConfigResult). The loopback is in every pod.
func pluginsOf(config string) (types []string) {
	var told struct {
		Networks []struct {
			Config struct {
				Plugins []struct {
					Network struct {
						Type string `json:"type"`
					} `json:"Network"`
				} `json:"Plugins"`
			} `json:"Config"`
		} `json:"Networks"`
	}
	if json.Unmarshal([]byte(config), &told) != nil {
		return nil
	}
	for _, network := range told.Networks {
		for _, plugin := range network.Config.Plugins {
			if plugin.Network.Type != "loopback" && plugin.Network.Type != "" {
				types = append(types, plugin.Network.Type)
			}
		}
	}
	return types
}
