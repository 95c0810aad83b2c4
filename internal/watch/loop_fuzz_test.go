package watch

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
)

// FuzzFold tells the loop any sequence of facts, true or not, and spoils its files in between. Whatever came, a checkpoint is
// there as long as no API server that serves says that its pod is gone; and once the node is whole again, so are its files.
func FuzzFold(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{1, 0x14, 2, 0x22, 5, 0, 6, 200, 0, 0x31, 3, 0})
	f.Add([]byte{7, 0, 0, 0x40, 1, 0x10, 2, 1, 6, 255, 0, 0x11, 6, 255, 6, 255})
	f.Fuzz(func(t *testing.T, events []byte) {
		if len(events) > 60 {
			return
		}
		onNode(t, func(n *node) {
			pods := []*corev1.Pod{daemonPod("web"), daemonPod("gateway")}
			n.healthy(pods...)
			gone := false
			for len(events) >= 2 {
				gone = n.event(events[0], events[1], pods) || gone
				events = events[2:]
				if !gone {
					for _, pod := range pods {
						n.wantFile(n.stored(pod))
					}
				}
			}
			n.healthy(pods...)
			n.pass(10 * time.Minute)
			n.healthy(pods...)
			n.pass(10 * time.Minute)
			for _, pod := range pods {
				n.wantFile(n.stored(pod))
				n.wantNoFile(n.active(pod))
			}
		})
	})
}

// event is one of those that the bytes choose. It says whether a serving API server was without one of the pods.
func (n *node) event(kind, arg byte, pods []*corev1.Pod) (gone bool) {
	some := pods[:arg%3]
	state := arg >> 4
	switch kind % 8 {
	case 0:
		n.cluster.set(func(c *fakeCluster) { c.pods = some })
		api := checkpoint.API(state % 5)
		n.api(api, some...)
		return api == checkpoint.APIServing && len(some) < len(pods)
	case 1:
		managed := make(map[checkpoint.UID]checkpoint.Managed)
		for _, pod := range some {
			managed[checkpoint.UID(pod.UID)] = checkpoint.Managed{Ready: state&1 == 0}
		}
		n.loop.KubeletPods.Put(kubelet.PodsFacts{State: checkpoint.Kubelet(state % 4), Managed: managed})
	case 2:
		n.running(some...)
	case 3:
		n.runningCheckpoint(pods[arg%2])
	case 4:
		n.loop.RuntimeSandboxes.Put(kubelet.RuntimeFacts{})
	case 5:
		_ = os.Remove(n.active(pods[arg%2]))
		n.diskChanged()
	case 6:
		n.pass(time.Duration(arg) * time.Second)
	case 7:
		n.loop.API.Put(apiclient.Facts{State: checkpoint.API(state % 5)})
	}
	n.diskChanged()
	return false
}
