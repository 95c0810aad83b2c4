package kubelet

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	corev1 "k8s.io/api/core/v1"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// heard is what others know of the node's pods. A kubelet without the Pods API tells only the names of its own, by
// podresources (k8s.io/kubelet/pkg/apis/podresources/v1): the UID behind a name is that of its newest sandbox, and
// whether the pod is ready, the API server told last.
type heard struct {
	asked atomic.Bool // somebody needs this

	mu    sync.Mutex
	uids  map[name]checkpoint.UID // nil: not told yet
	runs  map[name]bool           // it has a sandbox that is ready
	ready map[checkpoint.UID]bool
}

type name struct{ namespace, name string }

var (
	errClosed  = errors.New("the kubelet closed the connection")
	errPodsAPI = errors.New("the kubelet has the Pods API now")
)

// SawRuntime tells what runs. It never blocks. An older kubelet is asked again: what runs has changed.
func (p *Pods) SawRuntime(facts RuntimeFacts) {
	if facts.State != checkpoint.RuntimeKnown {
		return
	}
	uids, runs, created := make(map[name]checkpoint.UID), make(map[name]bool), make(map[name]time.Time)
	for _, s := range facts.Sandboxes {
		of := name{s.Namespace, s.Name}
		if !s.FromFile && !s.Created.Before(created[of]) {
			uids[of], created[of] = s.UID, s.Created
		}
		if !s.FromFile && s.Ready {
			runs[of] = true
		}
	}
	p.heard.mu.Lock()
	p.heard.uids, p.heard.runs = uids, runs
	p.heard.mu.Unlock()
	p.nodeChanged()
}

// SawPods tells what the API server says of this node's pods. It never blocks. An older kubelet is asked again.
func (p *Pods) SawPods(pods []*corev1.Pod) {
	ready := make(map[checkpoint.UID]bool)
	for _, pod := range pods {
		ready[checkpoint.UID(pod.UID)] = isReady(pod)
	}
	p.heard.mu.Lock()
	p.heard.ready = ready
	p.heard.mu.Unlock()
	p.nodeChanged()
}

func (p *Pods) nodeChanged() {
	if p.heard.asked.Load() {
		p.Kick()
	}
}

// connectByName asks an older kubelet, over one connection until it breaks, each time that it is kicked. That it knows
// no pod of the API server may mean that it has not seen the server since its start: it does not tell, and nothing tells
// when it has. So while something runs that it does not know, it is asked again, less and less often.
func (p *Pods) connectByName(ctx context.Context, retry interface{ Reset() }, report func(PodsFacts)) error {
	p.heard.asked.Store(true)
	defer p.heard.asked.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := dial("unix://"+filepath.Join(p.resources, "kubelet.sock"), grpc.WithIdleTimeout(0)) // it tells when the kubelet ends
	if err != nil {
		return err
	}
	defer conn.Close()
	client, closed, asks := podresourcesv1.NewPodResourcesListerClient(conn), make(chan struct{}), newBackoff()
	for first := true; ; first = false {
		listed, err := p.listByName(ctx, client)
		if err != nil {
			return err
		}
		managed, known, strangers := p.managedByName(listed)
		if first {
			retry.Reset()
			go func() {
				defer close(closed)
				conn.WaitForStateChange(ctx, connectivity.Ready)
			}()
		}
		if known {
			p.tell(report, PodsFacts{State: checkpoint.KubeletSynced, Managed: managed, Detail: "by podresources, which tells names only"})
		}
		var again <-chan time.Time
		if strangers {
			again = time.After(asks.NextBackOff())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return errClosed
		case <-p.kick:
			asks.Reset()
		case <-again:
		}
		if !missing(p.directory) {
			return errPodsAPI
		}
	}
}

func (p *Pods) listByName(ctx context.Context, client podresourcesv1.PodResourcesListerClient) (listed map[name]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience)
	defer cancel()
	response, err := client.List(ctx, &podresourcesv1.ListPodResourcesRequest{})
	if err != nil {
		return nil, err
	}
	listed = make(map[name]bool)
	for _, pod := range response.PodResources {
		listed[name{pod.Namespace, pod.Name}] = true
	}
	return listed, nil
}

// managedByName are the pods of those names. known: it is known what runs. strangers: something runs, for the API server,
// that is not listed.
func (p *Pods) managedByName(listed map[name]bool) (managed map[checkpoint.UID]checkpoint.Managed, known, strangers bool) {
	p.heard.mu.Lock()
	defer p.heard.mu.Unlock()
	managed = make(map[checkpoint.UID]checkpoint.Managed)
	for of, uid := range p.heard.uids {
		if listed[of] {
			managed[uid] = checkpoint.Managed{Ready: p.heard.ready[uid]}
		}
		strangers = strangers || p.heard.runs[of] && !listed[of]
	}
	return managed, p.heard.uids != nil, strangers
}
