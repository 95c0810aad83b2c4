//go:build linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/pki"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
)

// TestSources takes away what the checkpointer watches, in every way that a node knows, while its pods run. It must
// notice, say so once, and activate nothing: none of this is a pod that is down.
func TestSources(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	before := s.testimonies(ctx, s.Web)

	var files map[string][]string
	for _, part := range []struct {
		name string
		run  func(context.Context, *testSite)
	}{
		{"API server in each way of being away", apiServerOutages},
		{"hung, alone and in pairs", hungInPairs},
		{"kubelet restarted 20 times", kubeletRestarts},
		{"containerd restarted under load", containerdRestarts},
		{"certificate of another node", otherIdentity},
		{"API server with an older history", olderHistory},
	} {
		t.Run(part.name, func(t *testing.T) {
			s, begin := s.in(t), time.Now()
			part.run(ctx, s)
			s.unharmed(ctx, begin)
		})
		if files == nil {
			files = s.openFiles()
		}
	}
	after := s.testimonies(ctx, s.Web)
	if after.web.PID != before.web.PID || !after.web.Started.Equal(before.web.Started) || !after.gateway.Started.Equal(before.gateway.Started) {
		t.Error("a pod was restarted")
	}
	for pid, now := range s.openFiles() {
		t.Logf("checkpointer %s has %d files open, before %d; inotify instances: %d", pid, len(now), len(files[pid]), count(now, "anon_inode:inotify"))
		if len(now) > len(files[pid])+2 {
			t.Errorf("checkpointer %s leaks files: %q, before %q", pid, now, files[pid])
		}
		if count(now, "anon_inode:inotify") > 2 {
			t.Errorf("checkpointer %s takes more than 2 inotify instances: %q", pid, now)
		}
	}
}

// openFiles are the files that each copy of the checkpointer has open, by its process ID.
func (s *testSite) openFiles() map[string][]string {
	s.t.Helper()
	open := make(map[string][]string)
	for _, pid := range agents() {
		process := strconv.Itoa(pid)
		descriptors, err := filepath.Glob("/proc/" + process + "/fd/*")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, descriptor := range descriptors {
			if file, err := os.Readlink(descriptor); err == nil {
				open[process] = append(open[process], file)
			}
		}
	}
	if len(open) != 2 {
		s.t.Errorf("%d copies of the checkpointer run, want the DaemonSet's and the static one", len(open))
	}
	return open
}

func count(all []string, one string) (n int) {
	for _, file := range all {
		if file == one {
			n++
		}
	}
	return n
}

// unharmed: no checkpoint was activated since, and none runs beside its pod.
func (s *testSite) unharmed(ctx context.Context, since time.Time) {
	s.t.Helper()
	activations := 0
	for _, line := range s.log(since) {
		if line.Action == "activate" {
			activations++
			s.t.Errorf("activated without need: %s", line.Text)
		}
	}
	s.step(fmt.Sprintf("%d activations", activations), site.Soon(ctx, "the workloads", func(ctx context.Context) error {
		_, web := lab.Testimony(ctx, site.GatewayAddress)
		_, gateway := s.WebTestimony(ctx, s.Web)
		return errors.Join(web, gateway)
	}))
	running, err := s.RunningCheckpoints(ctx)
	s.step("checkpoints are counted", err)
	if !slices.Equal(running, []string{s.Self}) {
		s.t.Errorf("checkpoints that run: %v, want only the checkpointer's own", running)
	}
}

// becomes waits until the checkpointer says that the API server is in a state, and checks that it took no longer than
// allowed.
func (s *testSite) becomes(ctx context.Context, state string, begin time.Time, within time.Duration) {
	s.t.Helper()
	var at time.Time
	err := site.Soon(ctx, "the API server to be "+state, func(context.Context) error {
		lines := s.apiLines(begin)
		i := slices.IndexFunc(lines, func(l site.LogLine) bool { return l.To == state })
		if i < 0 {
			return fmt.Errorf("no line says so:\n%s", lines)
		}
		at = lines[i].Time
		return nil
	})
	took := at.Sub(begin)
	s.step(fmt.Sprintf("the checkpointer says %s after %.2f s", state, took.Seconds()), err)
	if took > within {
		s.t.Errorf("%s was said after %v, want %v at most", state, took, within)
	}
}

func (s *testSite) apiLines(since time.Time) site.LogLines {
	return slices.DeleteFunc(s.log(since), func(l site.LogLine) bool {
		return l.Level == "debug" || !strings.HasPrefix(l.Message, "API server")
	})
}

func apiServerOutages(ctx context.Context, s *testSite) {
	restart := func() error { return s.APIServer.Start(ctx) }
	for _, outage := range []struct {
		how    string
		begin  func() error
		end    func() error
		within time.Duration
	}{
		{"killed", func() error { return s.APIServer.Kill(ctx) }, restart, time.Second},
		{"hung", s.APIServer.Pause, s.APIServer.Resume, 10 * time.Second},
		{"behind a black hole", s.BlackHole, s.EndBlackHole, 10 * time.Second},
		{"stopped", func() error { return s.APIServer.Stop(ctx) }, restart, 6 * time.Second}, // 5 s of which it still serves
	} {
		s.t.Run(outage.how, func(t *testing.T) {
			s, begin := s.in(t), time.Now()
			s.step("API server is "+outage.how, outage.begin())
			s.becomes(ctx, "lost", begin, outage.within)
			s.step("the outage is over", outage.end())
			s.becomes(ctx, "serving", begin, time.Since(begin)+2*time.Second)
			if lines := s.apiLines(begin); len(lines) > 4 {
				s.t.Errorf("it says too much of one outage:\n%s", lines)
			}
		})
	}
}

func hungInPairs(ctx context.Context, s *testSite) {
	all := []struct {
		name string
		*lab.Component
	}{{"API server", s.APIServer}, {"kubelet", s.Kubelet}, {"containerd", s.Containerd}}
	for i, one := range all {
		for _, other := range all[i:] {
			name := one.name
			if other != one {
				name += " and " + other.name
			}
			s.t.Run(name, func(t *testing.T) {
				s, begin := s.in(t), time.Now()
				s.step(name+" paused", errors.Join(one.Pause(), other.Pause()))
				s.wait(ctx, 12*time.Second)
				s.step(name+" resumed", errors.Join(one.Resume(), other.Resume()))
				s.step("the node is Ready", s.WaitReady(ctx))
				s.unharmed(ctx, begin)
			})
		}
	}
}

// wait lets time pass, in which nothing is to be seen.
func (s *testSite) wait(ctx context.Context, d time.Duration) {
	s.t.Helper()
	begin := time.Now()
	s.step(fmt.Sprintf("%v pass", d), lab.Wait(ctx, "time to pass", func(context.Context) error {
		if left := d - time.Since(begin); left > 0 {
			return fmt.Errorf("%v to go", left)
		}
		return nil
	}))
}

func kubeletRestarts(ctx context.Context, s *testSite) {
	for i := range 20 {
		end := s.Kubelet.Kill
		if i%2 == 0 {
			end = s.Kubelet.Stop
		}
		if err := errors.Join(end(ctx), s.Kubelet.Start(ctx)); err != nil {
			s.t.Fatal(err)
		}
		if i%3 == 0 { // the others are restarted before they have seen the API server
			s.step("the checkpointer knows what the kubelet manages", s.saysSynced(ctx))
		}
	}
	s.step("the kubelet was restarted 20 times", s.WaitReady(ctx))
	s.step("the checkpointer knows what the kubelet manages", s.saysSynced(ctx))
}

// saysSynced waits for the line that says what the present kubelet does.
func (s *testSite) saysSynced(ctx context.Context) error {
	return site.Soon(ctx, "the line about the kubelet", func(context.Context) error {
		lines := s.log(s.Kubelet.StartedAt())
		if !slices.ContainsFunc(lines, func(l site.LogLine) bool { return l.To == "synced" }) {
			return fmt.Errorf("it does not say so:\n%s", lines)
		}
		return nil
	})
}

var load = template.Must(template.New("load").Parse(`
apiVersion: v1
kind: Pod
metadata: {name: {{.}}, namespace: default, labels: {app: load}}
spec:
  nodeName: node-1
  terminationGracePeriodSeconds: 0
  containers:
  - {name: witness, image: "pod-checkpointer/witness:dev", imagePullPolicy: IfNotPresent, args: ["--listen=:8080"]}
---
`))

func containerdRestarts(ctx context.Context, s *testSite) {
	var pods bytes.Buffer
	for i := range 12 {
		if err := load.Execute(&pods, fmt.Sprintf("load-%d", i)); err != nil {
			s.t.Fatal(err)
		}
	}
	s.step("12 pods are wanted", s.Apply(ctx, pods.Bytes()))
	for i := range 4 {
		end := s.Containerd.Kill
		if i%2 == 0 {
			end = s.Containerd.Stop
		}
		s.step("containerd is restarted", errors.Join(end(ctx), s.Containerd.Start(ctx)))
		s.wait(ctx, time.Second)
	}
	s.step("all 12 run", lab.Wait(ctx, "12 pods", func(ctx context.Context) error {
		pods, err := s.PodsOf(ctx, "default", "app=load")
		for _, pod := range pods {
			if len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
				err = errors.Join(err, fmt.Errorf("%s is not ready", pod.Name))
			}
		}
		return err
	}, s.Kubelet, s.Containerd))
	_, err := s.Kubectl(ctx, "delete", "pods", "-n", "default", "-l", "app=load", "--now")
	s.step("they are gone", err)
}

// otherIdentity: a credential that is not accepted is refusal, and not an outage of the server. Its replacement is used
// without a restart of the checkpointer.
func otherIdentity(ctx context.Context, s *testSite) {
	other, err := s.Issue(pki.Subject{Name: "system:node:another", Organizations: []string{"system:nodes"}})
	s.step("a certificate is issued", errors.Join(err, s.SetClientCertificate(other)))
	begin := time.Now()
	s.step("API server is restarted", errors.Join(s.APIServer.Kill(ctx), s.APIServer.Start(ctx)))
	// In another way away than before, so that it waits for 10 s whether that is going to last.
	s.becomes(ctx, "refusing", begin, time.Since(begin)+12*time.Second)

	own, err := s.Issue(lab.NodeSubject())
	begin = time.Now()
	s.step("the right certificate is back", errors.Join(err, s.SetClientCertificate(own)))
	s.becomes(ctx, "serving", begin, 2*time.Second)
	// The kubelet goes on with its connection, and so with the wrong name, for up to five minutes.
	s.step("API server is restarted", errors.Join(s.APIServer.Kill(ctx), s.APIServer.Start(ctx)))
	s.step("the node is Ready", s.WaitReady(ctx))
}

const refused = `
apiVersion: v1
kind: Pod
metadata: {name: refused, namespace: kube-system, annotations: {checkpointer.alpha.coreos.com/checkpoint: "true"}}
spec:
  nodeName: node-1
  restartPolicy: Never
  containers: [{name: main, image: "pod-checkpointer/witness:dev", imagePullPolicy: Never}]
`

// olderHistory restores the cluster's etcd. The server's versions are then lower than those that the checkpointer has
// seen, and a watch that went on from there would stay silent. A pod that can't be checkpointed is what shows that it
// looks: it says so as soon as it sees one.
func olderHistory(ctx context.Context, s *testSite) {
	data := filepath.Join(filepath.Dir(s.PKI()), "etcd")
	backup := data + "-backup"
	stop := func() error { return errors.Join(s.APIServer.Kill(ctx), s.Etcd.Stop(ctx)) }
	start := func() error { return errors.Join(s.Etcd.Start(ctx), s.APIServer.Start(ctx)) }
	s.step("a backup is made", errors.Join(stop(), os.CopyFS(backup, os.DirFS(data)), start()))
	for range 20 {
		_, err := s.Kubectl(ctx, "annotate", "node", lab.NodeName, "--overwrite", fmt.Sprintf("example.com/time=%d", time.Now().UnixNano()))
		if err != nil {
			s.t.Fatal(err)
		}
	}
	begin := time.Now()
	s.step("the backup is restored", errors.Join(stop(), os.RemoveAll(data), os.Rename(backup, data), start()))
	s.becomes(ctx, "serving", begin, time.Since(begin)+2*time.Second)

	begin = time.Now()
	s.step("a pod is applied", s.Apply(ctx, []byte(refused)))
	s.step("the checkpointer has seen it", site.Soon(ctx, "the line about the pod", func(context.Context) error {
		if lines := s.log(begin); !slices.ContainsFunc(lines, func(l site.LogLine) bool { return l.Pod == "kube-system/refused" }) {
			return fmt.Errorf("no line names it:\n%s", lines)
		}
		return nil
	}))
	_, err := s.Kubectl(ctx, "delete", "pod", "-n", "kube-system", "refused", "--now", "--wait=false")
	s.step("the pod is deleted", err)
}
