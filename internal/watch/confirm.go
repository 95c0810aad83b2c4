package watch

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// confirm asks the API server, by a live LIST, which lineages are gone, and whether it is still the cluster that this
// node belongs to: one whose etcd was lost or restored answers 200 with nothing.
func (l *Loop) confirm(ctx context.Context) {
	l.ask(ctx, "confirmation", func() (func(), error) {
		asked := time.Now()
		uid, err := l.Cluster.NodeUID(ctx)
		if err != nil {
			return nil, fmt.Errorf("read this node's own Node object: %w", err)
		}
		pods, err := l.Cluster.LivePods(ctx)
		return func() { l.confirmed(asked, uid, pods) }, err
	})
}

// confirmed notes that every lineage without a pod in a live LIST is gone.
func (l *Loop) confirmed(asked time.Time, nodeUID string, pods []*corev1.Pod) {
	if known, err := l.Store.AdoptNode(l.Options.NodeName, nodeUID); err != nil || known != nodeUID {
		l.retries.failed("confirmation")
		l.Log.Error().Err(err).Str("recorded", known).Str("now", nodeUID).
			Msg("the API server knows this node by another UID than the one recorded here: nothing is removed")
		return
	}
	present := make(map[checkpoint.Lineage]bool)
	for _, pod := range pods {
		if manifest.IsParent(pod) {
			present[manifest.LineageOf(pod)] = true
		}
	}
	for _, c := range l.world.Disk.Checkpoints {
		if !present[c.Lineage] {
			l.world.Confirmed[c.Lineage] = asked
		}
	}
}
