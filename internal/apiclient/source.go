package apiclient

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	errEndedEarly = errors.New("the watch ended before its time")
	errOverdue    = errors.New("the server did not end the watch in its time")
	errReplaced   = errors.New("credentials were replaced")
)

// slack is how far from its time a watch may end.
const slack = 10 * time.Second

// source is where the reflector lists and watches. It begins with a consistent read, always. It goes on from where a
// watch ended only if that ended in its time: a server that ends one early may come back as another, with an older
// history, and would then send nothing, without an error, until its history has caught up
// (k8s.io/apiserver/pkg/storage/cacher.Cacher.Watch knows no version that is too new).
type source struct {
	client  *Client
	end     context.CancelCauseFunc
	due     time.Time // when the server should end the watch in hand; zero before the first
	overdue *time.Timer
}

func (c *Client) source(end context.CancelCauseFunc) *cache.ListWatch {
	s := &source{client: c, end: end}
	return &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
}

func (s *source) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.due = time.Time{}
	options.ResourceVersion, options.ResourceVersionMatch = "", ""                        // the reflector asks for any cached state
	options.Limit = 0                                                                     // a page would be read around the server's cache
	pods, err := fetch[*corev1.PodList](ctx, s.client.pods(s.client.watching(), options)) // the reflector takes anything for a list
	if err != nil {
		return nil, err
	}
	return pods, nil
}

func (s *source) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if !s.due.IsZero() {
		if time.Until(s.due) > slack {
			return nil, errEndedEarly
		}
		if s.client.refresh() {
			return nil, errReplaced
		}
	}
	lifetime := time.Duration(*options.TimeoutSeconds) * time.Second
	start := time.Now()
	options.Watch = true
	w, err := s.client.pods(s.client.watching(), options).Watch(ctx)
	switch {
	case err == nil:
		s.due = start.Add(lifetime)
		s.expect(ctx, lifetime+slack)
		return w, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx) // after some errors the reflector would sleep, whatever becomes of ctx
	default:
		return nil, err
	}
}

// expect ends everything if the watch outlives what was asked for: something between us and the server holds it open.
func (s *source) expect(ctx context.Context, lifetime time.Duration) {
	if s.overdue != nil {
		s.overdue.Reset(lifetime)
		return
	}
	s.overdue = time.AfterFunc(lifetime, func() { s.end(errOverdue) })
	context.AfterFunc(ctx, func() { s.overdue.Stop() })
}

// pods is a request for this node's pods.
func (c *Client) pods(with *rest.RESTClient, options metav1.ListOptions) *rest.Request {
	options.FieldSelector = "spec.nodeName=" + c.config.NodeName
	return with.Get().Resource("pods").VersionedParams(&options, scheme.ParameterCodec)
}
