package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/cleanup"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/probe"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
	"github.com/pod-checkpointer/pod-checkpointer/internal/watch"
)

func newRunCommand(env lookupEnv) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent",
		Long: `Run the agent. It needs root, the kubelet's directories and the container runtime's socket at the paths below, and the
name of its node. Each flag can be set by a variable of its name too: --node-name by CHECKPOINTER_NODE_NAME.

It waits for an API server for as long as it takes. Exit code 0: it was told to end. 1: this node can't be worked on;
the last line says what was looked for. 2: a flag or a variable is wrong.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := environment(cmd.Flags(), env); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return usage(err)
			}
			log, err := o.logger(cmd.ErrOrStderr())
			if err != nil {
				return usage(err)
			}
			apiclient.LogThrough(log)
			return run(cmd.Context(), o, log)
		},
	}
	o.add(cmd.Flags(), env)
	return cmd
}

// run is the agent. It returns nil when ctx ends or the node has no use for it any more, and an error when this node can't be worked on.
func run(ctx context.Context, o options, log zerolog.Logger) error {
	if err := kubelet.CheckDir(o.kubeletDir); err != nil {
		return err
	}
	if _, err := apiclient.New(apiclient.Config{Kubeconfig: o.kubeconfig, NodeName: o.nodeName}, log); err != nil {
		return err
	}
	endpoint, err := findRuntime(o.runtimeEndpoint)
	if err != nil {
		return err
	}
	log.Info().Str("version", version).Strs("namespaces", o.namespaces).Str("runtime", endpoint).Msg("starting")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	role := role{pings: make(watch.Pings)}
	go probe.Serve(ctx, o.socket, role.answer, log)
	for {
		unlock, err := lock(ctx, o.lockFile, log)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if !cleanup.Intended(o.lockFile) {
			role.leading.Store(true)
			err = lead(ctx, o, endpoint, role.pings, log)
			role.leading.Store(false)
		}
		unlock()
		if err != nil || ctx.Err() != nil || !cleanup.Intended(o.lockFile) {
			log.Info().Msg("stopped")
			return err
		}
		log.Info().Msg("standing by: a cleanup of this node is under way")
		if err := cleanup.Await(ctx, o.lockFile); err != nil {
			return err
		}
	}
}

// lead is what the copy does that holds the lock: until ctx ends, a cleanup wants the lock, or there is nothing left to do.
func lead(ctx context.Context, o options, endpoint string, pings watch.Pings, log zerolog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, err := apiclient.New(apiclient.Config{Kubeconfig: o.kubeconfig, NodeName: o.nodeName}, log)
	if err != nil {
		return err
	}
	store, err := manifest.OpenStore(o.dirs)
	if err != nil {
		return err
	}
	pods := kubelet.NewPods(o.kubeletDir, log)
	runtime := kubelet.NewRuntime(endpoint, o.runtimeTimeout, log)
	volumes := kubelet.NewVolumes(pods, log)
	directories := watch.NewDirectories(log, o.dirs.Manifests, o.dirs.Inactive, o.dirs.Assets, cleanup.IntentFile(o.lockFile))
	loop := watch.NewLoop(watch.Config{
		Policy:        o.policy,
		Namespaces:    o.namespaces,
		SelfNamespace: o.podNamespace,
		SelfName:      o.podName,
		KubeletDir:    o.kubeletDir,
		Options:       manifest.Options{AssetsDir: o.dirs.Assets, NodeName: o.nodeName},
		Store:         store,
		Cluster:       api,
		Kubelet:       pods,
		Volumes:       volumes,
		Disk:          directories,
		Runtime:       runtime,
		Pings:         pings,
		Events:        api,
		StatusFile:    status.File(o.lockFile),
		Agent: status.Agent{
			Version: version, Node: o.nodeName, Namespace: o.podNamespace, Pod: o.podName,
			PID: os.Getpid(), Leading: time.Now(),
		},
		Log: log,
	})

	var sources sync.WaitGroup
	sources.Go(func() {
		api.Run(ctx, func(f apiclient.Facts) { loop.API.Put(f); pods.SawPods(f.Pods) })
	})
	sources.Go(func() { pods.Run(ctx, loop.KubeletPods.Put) })
	sources.Go(func() {
		runtime.Run(ctx, func(f kubelet.RuntimeFacts) { loop.RuntimeSandboxes.Put(f); pods.SawRuntime(f) })
	})
	sources.Go(func() {
		volumes.Run(ctx, func(uid checkpoint.UID) { loop.VolumeChanges.Put(map[checkpoint.UID]bool{uid: true}) })
	})
	sources.Go(func() {
		directories.Run(ctx, func(dirs map[string]bool) {
			if cleanup.Intended(o.lockFile) {
				cancel()
				return
			}
			if delete(dirs, filepath.Dir(o.lockFile)); len(dirs) > 0 { // no checkpoint lies there
				loop.Directories.Put(dirs)
			}
		})
	})
	loop.Run(ctx)
	cancel()
	sources.Wait()
	return nil
}

// findRuntime is the endpoint of the container runtime: the given one, else the one that there is.
func findRuntime(endpoint string) (string, error) {
	if endpoint == "" {
		return kubelet.FindRuntimeEndpoint()
	}
	path := strings.TrimPrefix(endpoint, unixScheme)
	if info, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no container runtime at %s, as --container-runtime-endpoint says: %w", path, err)
	} else if info.Mode().Type() != os.ModeSocket {
		return "", fmt.Errorf("no container runtime at %s, as --container-runtime-endpoint says: it is no socket", path)
	}
	return endpoint, nil
}

// lock waits until this copy is the one that acts. The other copy, the DaemonSet's or the static one, stands by here.
func lock(ctx context.Context, path string, log zerolog.Logger) (unlock func(), err error) {
	file := flock.New(path, flock.SetPermissions(0o600))
	held, err := file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("the lock %s can't be taken; its directory %s must exist and be writable, or --lock-file name another: %w",
			path, filepath.Dir(path), err)
	}
	start := time.Now()
	if !held {
		log.Info().Str("lock", path).Msg("standing by: another copy on this node holds the lock")
		taken := make(chan error, 1)
		go func() { taken <- file.Lock() }()
		select {
		case <-ctx.Done():
			return func() {}, nil
		case err = <-taken:
			if err != nil {
				return nil, fmt.Errorf("wait for the lock %s: %w", path, err)
			}
		}
	}
	log.Info().Str("lock", path).Dur("waited", time.Since(start)).Msg("leading: this copy acts")
	return func() { _ = file.Unlock() }, nil
}
