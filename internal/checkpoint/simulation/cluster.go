package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// controller is what makes the pods of a workload.
type controller uint8

const (
	daemonSet   controller = iota // deletes the old pod, then makes the new one, under another name
	deployment                    // makes the new pod, and deletes the old one when the new one is Ready
	statefulSet                   // deletes the old pod, then makes the new one, under the same name
)

// health is what is wrong with a revision of a workload.
type health uint8

const (
	fine       health = iota
	crashes           // its container exits after a second
	unpullable        // its container is never created
	neverReady        // it runs, and does not become Ready
)

// Workload is what somebody wants to run on the node, one pod at a time.
type Workload struct {
	Name       string
	Controller controller
	Handover   checkpoint.Handover
	Port       checkpoint.Port // of the node, or empty
	HostsAPI   bool            // the API server runs in it
	Self       bool            // the checkpointer runs in it
	StartTakes time.Duration   // from its sandbox to its container: pulls and init containers

	wanted   bool // somebody wants it on this node
	revision int
	health   health
	secret   int           // the version of what its pods mount
	createAt time.Duration // when the controller makes the next pod, if there is none
	pods     int           // made so far
}

func (w *Workload) lineage() checkpoint.Lineage { return checkpoint.Lineage(w.Name) }

// pod is a pod as etcd has it.
type pod struct {
	uid      checkpoint.UID
	name     string
	work     int // the index of its workload
	revision int
	manifest string // that a checkpoint of it would have
	health   health
	created  time.Duration
	deleting bool
	phase    checkpoint.PodPhase
	ready    bool // as the kubelet last reported
}

// etcd is what the API server knows.
type etcd struct {
	node  int // the UID of the Node object
	pods  []pod
	blank bool // it was emptied: there are no controllers' objects either
}

// serves says whether the API server answers at all: always, or while a copy of the pod that it runs in is up.
func (w *World) serves() bool {
	for i := range w.workloads {
		if !w.workloads[i].HostsAPI {
			continue
		}
		return slices.ContainsFunc(w.sandboxes, func(s sandbox) bool {
			return s.work == i && s.state == checkpoint.ContainerRunning && s.health != crashes && w.now >= s.startedAt+apiStartTakes
		})
	}
	return true
}

// reachable says whether the node's components reach the API server.
func (w *World) reachable() bool { return w.powered && w.network && w.serves() }

// control lets the controllers act. They run beside the API server.
func (w *World) control() {
	if !w.serves() || w.etcd.blank || !w.elsewhere() {
		return
	}
	for i := range w.workloads {
		w.controlOne(i, &w.workloads[i])
	}
}

// elsewhere says whether the controllers can reach the API server: one that lives on the node needs the network.
func (w *World) elsewhere() bool { return w.network || !w.hosting() }

func (w *World) hosting() bool {
	return slices.ContainsFunc(w.workloads, func(o Workload) bool { return o.HostsAPI })
}

func (w *World) controlOne(i int, work *Workload) {
	var mine []*pod
	for j := range w.etcd.pods {
		if w.etcd.pods[j].work == i {
			mine = append(mine, &w.etcd.pods[j])
		}
	}
	present, upToDate, ready := 0, false, false
	for _, p := range mine {
		switch {
		case !work.wanted && !p.deleting, p.phase != checkpoint.PodLive && !p.deleting:
			p.deleting = true // a DaemonSet's, a StatefulSet's and here a ReplicaSet's controller replaces a pod that failed
			w.tell("the controller of %s deletes pod %s", work.Name, p.uid)
		}
		if p.deleting && work.Controller == deployment {
			continue
		}
		present++
		upToDate = upToDate || !p.deleting && p.revision == work.revision
		ready = ready || !p.deleting && p.revision == work.revision && p.ready
	}
	surge := work.Controller == deployment
	for _, p := range mine {
		if work.wanted && !p.deleting && p.revision != work.revision && (!surge || ready) {
			p.deleting = true
			w.tell("the controller of %s deletes pod %s of an older revision", work.Name, p.uid)
		}
	}
	if !work.wanted || upToDate || present > 0 && !surge {
		work.createAt = 0
		return
	}
	if work.createAt == 0 {
		work.createAt = w.now + w.jitter(controllerTakes)
	}
	if w.now >= work.createAt {
		w.create(i, work)
	}
}

func (w *World) create(i int, work *Workload) {
	work.createAt, work.pods = 0, work.pods+1
	uid := fmt.Sprintf("%s-%d", work.Name, work.pods)
	name := uid
	if work.Controller == statefulSet {
		name = work.Name
	}
	manifest := fmt.Sprintf("%s@%d", uid, work.revision)
	w.healths[manifest] = work.health
	w.etcd.pods = append(w.etcd.pods, pod{
		uid: checkpoint.UID(uid), name: name, work: i, revision: work.revision, manifest: manifest, health: work.health, created: w.now,
	})
	w.tell("the controller of %s makes pod %s, revision %d%s", work.Name, uid, work.revision, describeHealth(work.health))
}

func describeHealth(h health) string {
	return [...]string{"", ", which crashes", ", whose image can't be pulled", ", which never gets ready"}[h]
}

// parents are the pods as the agent is told of them.
func (w *World) parents() (parents []checkpoint.Parent) {
	for _, p := range w.etcd.pods {
		work := &w.workloads[p.work]
		m := p.manifest
		parents = append(parents, checkpoint.Parent{
			UID: p.uid, Namespace: namespace, Name: p.name, Lineage: work.lineage(), Created: at(p.created), Deleting: p.deleting,
			Phase: p.phase, Ready: p.ready, Containers: containers, Handover: work.Handover, Ports: work.ports(),
			Rendering: checkpoint.Rendered, Manifest: m, Digest: m + "+" + strconv.Itoa(work.secret),
		})
	}
	return parents
}

func (w *Workload) ports() []checkpoint.Port {
	if w.Port == "" {
		return nil
	}
	return []checkpoint.Port{w.Port}
}

const namespace = "ns"

var containers = []string{"main"}
