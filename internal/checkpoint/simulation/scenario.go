package simulation

import (
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// world is the history's world before anything happens.
func (r Run) world(t *tale) *World {
	random := r.stream(-1)
	var workloads []Workload
	for _, work := range []Workload{
		{Name: "web", Controller: daemonSet, StartTakes: 300 * time.Millisecond},
		{Name: "app", Controller: deployment, StartTakes: 2 * time.Second},
		{Name: "db", Controller: statefulSet, Handover: checkpoint.HandoverExclusive, StartTakes: 300 * time.Millisecond},
		{Name: "dns", Controller: daemonSet, Handover: checkpoint.HandoverCreated, Port: "53/UDP", StartTakes: 5 * time.Second},
		{Name: "cache", Controller: daemonSet, Handover: checkpoint.HandoverCreated, Port: "53/UDP", StartTakes: time.Second},
		{Name: "api", Controller: daemonSet, Handover: checkpoint.HandoverCreated, Port: "6443/TCP", HostsAPI: true, StartTakes: 300 * time.Millisecond},
		{Name: "checkpointer", Controller: daemonSet, Self: true, StartTakes: 300 * time.Millisecond},
	} {
		if random.IntN(5) < 2 {
			work.wanted = true
			workloads = append(workloads, work)
		}
	}
	if len(workloads) == 0 {
		workloads = []Workload{{Name: "web", Controller: daemonSet, StartTakes: time.Second, wanted: true}}
	}
	w := NewWorld(workloads, checkpoint.DefaultPolicy(), t)
	w.random, w.noPodsAPI = random, random.IntN(8) == 0
	w.Pass(2 * time.Minute)
	return w
}

// NewWorld is a node that runs the first pods of its workloads, and has just started.
func NewWorld(workloads []Workload, policy checkpoint.Policy, t *tale) *World {
	w := &World{
		now: time.Second, powered: true, network: true, workloads: workloads, healths: make(map[string]health),
		etcd: etcd{node: 1}, policy: policy, oracle: oracle{works: make([]judgement, len(workloads))}, tale: t,
	}
	for i := range workloads {
		work := &w.workloads[i]
		work.wanted, work.revision = true, 1
		if work.Self {
			w.policy.Self = work.lineage()
		}
		w.create(i, work)
	}
	w.backup = w.etcd.clone()
	w.kubelet.up, w.kubelet.synced = true, true // it has seen the API server before that went to live in a pod
	w.kubelet.list = w.etcd.clone().pods
	w.agent.startAt = w.now + time.Second
	return w
}
