package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// identify has the UID of this node's own Node object recorded while pods of ours run on it, so that a later one can be
// told from it.
func (l *Loop) identify(ctx context.Context) {
	if l.identified || l.world.API != checkpoint.APIServing || len(l.pods) == 0 {
		return
	}
	l.ask(ctx, "identity of the node", func() (func() error, error) {
		uid, err := l.Cluster.NodeUID(ctx)
		return func() error {
			_, err := l.Store.AdoptNode(l.Options.NodeName, uid)
			l.identified = err == nil
			return err
		}, err
	})
}

// confirm asks the API server, by a live LIST, which lineages are gone, and whether it is still the cluster that this
// node belongs to: one whose etcd was lost or restored answers 200 with nothing.
func (l *Loop) confirm(ctx context.Context, wanted checkpoint.Lineage) {
	l.ask(ctx, "confirmation", func() (func() error, error) {
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
	known, err := l.Store.AdoptNode(l.Options.NodeName, nodeUID)
	if err != nil {
		return err
	}
	if known != nodeUID {
		return fmt.Errorf("the API server knows this node by the UID %s, and recorded here is %s: nothing is removed", nodeUID, known)
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
