package apiclient

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Event is what happened to a pod's checkpoint, for `kubectl describe pod`.
type Event struct {
	Namespace, Pod string
	UID            types.UID
	Warning        bool
	Reason         string // one word in camel case, as Kubernetes has it
	Message        string

	at time.Time
}

const (
	maxEvents  = 64                     // that wait; an outage must not fill the memory
	eventPause = 200 * time.Millisecond // between two
	eventAgain = 10 * time.Minute       // before the same is told again
	maxMessage = 1024                   // bytes: k8s.io/kubernetes/pkg/apis/core/validation.NoteLengthLimit
	maxPodName = 230                    // bytes of it in the name of an event, which has 253
)

// events are those that wait for an API server that serves. They are lost with the process, and when they are too many.
type events struct {
	waiting []Event
	told    map[Event]time.Time
	some    chan struct{} // holds a token while it is worth a look
}

// Tell is best effort, and never blocks. What happens while the API server is away is told when it is back.
func (c *Client) Tell(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for known, at := range c.events.told {
		if now.Sub(at) > eventAgain {
			delete(c.events.told, known)
		}
	}
	if _, ok := c.events.told[e]; ok || len(c.events.told) >= maxEvents {
		return
	}
	c.events.told[e] = now
	e.at = now
	c.events.waiting = append(c.events.waiting, e)
	c.wakeEvents()
}

// wakeEvents has the events sent. The caller holds c.mu.
func (c *Client) wakeEvents() {
	select {
	case c.events.some <- struct{}{}:
	default:
	}
}

// sendEvents writes events until ctx ends, one after the other, while the API server serves.
func (c *Client) sendEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.events.some:
		}
		for e, ok := c.nextEvent(); ok; e, ok = c.nextEvent() {
			if err := c.send(ctx, e); err != nil {
				c.log.Debug().Err(err).Str("reason", e.Reason).Msg("event is dropped")
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(eventPause):
			}
		}
	}
}

func (c *Client) nextEvent() (e Event, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events.waiting) == 0 || c.facts.State != checkpoint.APIServing {
		return Event{}, false
	}
	e, c.events.waiting = c.events.waiting[0], c.events.waiting[1:]
	return e, true
}

func (c *Client) send(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	at, kind := metav1.NewTime(e.at), corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	event := corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.Namespace, Name: fmt.Sprintf("%s.%x", e.Pod[:min(len(e.Pod), maxPodName)], e.at.UnixNano())},
		InvolvedObject:      corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Namespace, Name: e.Pod, UID: e.UID},
		Reason:              e.Reason,
		Message:             e.Message[:min(len(e.Message), maxMessage)],
		Type:                kind,
		FirstTimestamp:      at,
		LastTimestamp:       at,
		Count:               1,
		Source:              corev1.EventSource{Component: "pod-checkpointer", Host: c.config.NodeName},
		ReportingController: "pod-checkpointer",
		ReportingInstance:   c.config.NodeName,
	}
	return c.reading().Post().Resource("events").Namespace(e.Namespace).MaxRetries(0).Body(&event).Do(ctx).Error()
}
