package watch

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Events takes what people should see in `kubectl describe pod`. It must not block.
type Events interface {
	Tell(apiclient.Event)
}

// Reasons of Events. docs/logs.md lists them.
const (
	eventStored     = "CheckpointStored"
	eventRefused    = "CheckpointRefused"
	eventActivated  = "CheckpointActivated"
	eventHandedOver = "CheckpointHandedOver"
	eventKept       = "CheckpointKept"
)

func (l *Loop) tell(e apiclient.Event) {
	if l.Events != nil {
		l.Events.Tell(e)
	}
}

// tellSaved tells that a checkpoint is new, or of a pod that has changed. Secrets that are rotated are no news.
func (l *Loop) tellSaved(a checkpoint.Action) {
	if a.Kind == checkpoint.Save && a.Reason != checkpoint.ReasonAssetsChanged {
		l.tell(apiclient.Event{
			Namespace: a.Namespace, Pod: a.Name, UID: types.UID(a.UID), Reason: eventStored,
			Message: fmt.Sprintf("this pod's checkpoint is stored on node %s (%s)", l.Options.NodeName, a.Reason),
		})
	}
}

func (l *Loop) tellRefused(pod *corev1.Pod, err error) {
	l.tell(apiclient.Event{
		Namespace: pod.Namespace, Pod: pod.Name, UID: pod.UID, Warning: true, Reason: eventRefused,
		Message: "this pod can't be checkpointed: " + err.Error(),
	})
}

// tellTransition tells of what a checkpoint does in the pod's place. The agent's own is always there.
func (l *Loop) tellTransition(lineage checkpoint.Lineage, from, to checkpoint.State) {
	e := apiclient.Event{}
	switch {
	case lineage == l.Policy.Self:
		return
	case to.Marks.LoadBearing && !from.Marks.LoadBearing:
		e.Reason, e.Warning = eventKept, true
		e.Message = "the API server went away when this pod's checkpoint was withdrawn for removal: it is kept until the pod is up again"
	case from.Phase != checkpoint.Active && to.Phase == checkpoint.Active:
		e.Reason = eventActivated
		e.Message = fmt.Sprintf("this pod's checkpoint runs in its place on node %s (%s)", l.Options.NodeName, to.Reason)
	case from.Phase == checkpoint.Active && (to.Phase == checkpoint.Leaving || to.Phase == checkpoint.Stored):
		e.Reason = eventHandedOver
		e.Message = fmt.Sprintf("the pod takes over from its checkpoint on node %s (%s)", l.Options.NodeName, to.Reason)
	default:
		return
	}
	if parent := l.newestParent(lineage); parent != nil {
		e.Namespace, e.Pod, e.UID = parent.Namespace, parent.Name, types.UID(parent.UID)
	} else if all := l.checkpointsOf(lineage); len(all) > 0 {
		e.Namespace, e.Pod, e.UID = all[0].Namespace, all[0].Name, types.UID(all[0].ParentUID)
	} else {
		return
	}
	l.tell(e)
}
