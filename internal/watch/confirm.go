package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// identify has it recorded which Node object this node's checkpoints are from, so that a cluster which lost its history
// can be told from the one that they were made in. It is recorded once, on the evidence of a pod that has a checkpoint: no
// other cluster knows a pod by that UID. What is lost of it later is written again, never asked for again.
func (l *Loop) identify(ctx context.Context) {
	if !l.world.Disk.Known || len(l.world.Disk.Checkpoints) == 0 {
		return
	}
	recorded, err := l.Store.Node(l.Options.NodeName)
	switch {
	case err == nil:
		l.nodeUID = recorded
	case l.nodeUID != "":
		if !l.retries.blocked("record of the node") {
			l.recordNode(l.nodeUID)
		}
	case errors.Is(err, manifest.ErrNoNode) && l.world.API == checkpoint.APIServing && l.knowsCheckpoints():
		l.ask(ctx, "identity of the node", func() (func() error, error) {
			uid, err := l.Cluster.NodeUID(ctx)
			return func() error { return l.Store.RecordNode(l.Options.NodeName, uid) }, err
		})
	}
}

func (l *Loop) recordNode(uid string) {
	if err := l.Store.RecordNode(l.Options.NodeName, uid); err != nil {
		_, news := l.retries.failed("record of the node")
		l.Log.WithLevel(levelOf(zerolog.ErrorLevel, news)).Err(err).Msg("the record of this node's identity is lost and can't be written again: nothing is removed")
		return
	}
	l.retries.succeeded("record of the node")
}

// knowsCheckpoints says whether the API server has the very pod that a checkpoint was made of.
func (l *Loop) knowsCheckpoints() bool {
	return l.world.APICurrent && slices.ContainsFunc(l.world.Disk.Checkpoints, func(c checkpoint.Checkpoint) bool {
		return l.pods[c.ParentUID] != nil
	})
}

const confirmation = "confirmation"

// errOtherNode stays as long as nobody acts.
var errOtherNode = errors.New("this is another node, or another cluster")

// confirm asks the API server, by a live LIST, which lineages are gone, and whether it is still the cluster that this
// node belongs to: one whose etcd was lost or restored answers 200 with nothing.
func (l *Loop) confirm(ctx context.Context, wanted checkpoint.Lineage) {
	l.ask(ctx, confirmation, func() (func() error, error) {
		asked := time.Now()
		uid, err := l.Cluster.NodeUID(ctx)
		if err != nil {
			return nil, fmt.Errorf("read this node's own Node object: %w", err)
		}
		pods, err := l.Cluster.LivePods(ctx)
		return func() error { return l.confirmed(asked, wanted, uid, pods) }, err
	})
}

// confirmed notes that every lineage without a pod in a live LIST is gone.
func (l *Loop) confirmed(asked time.Time, wanted checkpoint.Lineage, nodeUID string, pods []*corev1.Pod) error {
	clear(l.world.Confirmed)
	known, err := l.Store.Node(l.Options.NodeName)
	if err != nil {
		return fmt.Errorf("nothing is removed: %w", err)
	}
	if known != nodeUID {
		return fmt.Errorf("%w: the API server knows it by the UID %s, and recorded here is %s: nothing is removed; if the node has joined the same cluster anew, remove state.json beside the stored manifests", errOtherNode, nodeUID, known)
	}
	present := make(map[checkpoint.Lineage]bool)
	for _, pod := range pods {
		if l.isParent(pod) {
			present[manifest.LineageOf(pod)] = true
		}
	}
	for _, c := range l.world.Disk.Checkpoints {
		if !present[c.Lineage] {
			l.world.Confirmed[c.Lineage] = asked
		}
	}
	if present[wanted] {
		return fmt.Errorf("a live LIST has a pod of %s, and the watch has not: nothing of it is removed", wanted)
	}
	return nil
}
