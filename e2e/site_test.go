//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

//go:embed testdata/workloads.yaml
var workloads []byte

const (
	namespace   = "kube-system"
	inactiveDir = "/etc/kubernetes/inactive-manifests"
	assetsDir   = "/etc/kubernetes/checkpoint-assets"

	gatewayAddress = lab.NodeAddress + ":7001"

	annotationCheckpointOf = "checkpointer.alpha.coreos.com/checkpoint-of"
)

// site is an edge site: a node with the checkpointer and its workloads, and a cluster that may be out of reach.
type site struct {
	*lab.Cluster
	*lab.Node
	timeline
	web, gateway, self string // names of the pods
}

// newSite brings one up, with every checkpoint stored and our own active.
func newSite(ctx context.Context, t *testing.T) *site {
	s := &site{timeline: timeline{t, time.Now()}}
	var err error
	s.Cluster, err = lab.StartCluster(ctx, lab.ClusterOptions{})
	s.step("cluster is up", err)
	s.Node, err = lab.StartNode(ctx, s.Cluster, lab.NodeOptions{})
	s.step("node is Ready", err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if t.Failed() {
			t.Logf("the checkpointer's log:\n%s", s.log(0))
		}
		if err := errors.Join(s.Node.Close(ctx), s.Cluster.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	s.step("checkpointer's image is imported", s.ImportCheckpointer(ctx))
	_, err = s.Kubectl(ctx, "label", "node", lab.NodeName, "example.com/site=edge")
	s.step("node is labelled", err)
	s.step("workloads are applied", s.Apply(ctx, workloads))
	s.step("checkpointer is applied", s.ApplyKustomize(ctx, "../deploy/base"))
	for _, name := range []string{"web", "gateway", "pod-checkpointer"} {
		s.step(name+" is ready", s.WaitDaemonSet(ctx, namespace, name))
	}
	s.web, s.gateway, s.self = s.podOf(ctx, "app=web"), s.podOf(ctx, "app=gateway"), s.podOf(ctx, "app.kubernetes.io/name=pod-checkpointer")
	s.step("every pod has a stored checkpoint", soon(ctx, "stored checkpoints", func(context.Context) error {
		return errors.Join(exists(stored(s.web)), exists(stored(s.gateway)), exists(stored(s.self)), exists(active(s.self)))
	}))
	s.step("checkpointer's static copy stands by", soon(ctx, "static copy", func(ctx context.Context) error {
		_, err := s.RunningContainer(ctx, namespace, static(s.self), "checkpointer")
		return err
	}, s.Kubelet))
	return s
}

func (s *site) podOf(ctx context.Context, selector string) string {
	s.t.Helper()
	pods, err := s.PodsOf(ctx, namespace, selector)
	if err == nil {
		// A mirror pod has the labels of its parent.
		for i := len(pods) - 1; i >= 0; i-- {
			if pods[i].Annotations["kubernetes.io/config.mirror"] != "" {
				pods = slices.Delete(pods, i, i+1)
			}
		}
	}
	if err != nil || len(pods) != 1 {
		s.t.Fatalf("pods with %s: %d, want 1 (%v)", selector, len(pods), err)
	}
	return pods[0].Name
}

// static is the name that the kubelet gives to the static pod of a manifest.
func static(pod string) string { return pod + "-" + lab.NodeName }

func stored(pod string) string { return filepath.Join(inactiveDir, namespace+"_"+pod+".json") }
func active(pod string) string { return filepath.Join(lab.Manifests, namespace+"_"+pod+".json") }

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

func absent(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there (%v)", path, err)
	}
	return nil
}

// webTestimony asks the witness of web, under the name that it runs by.
func (s *site) webTestimony(ctx context.Context, pod string) (testimony witness.Testimony, err error) {
	err = soon(ctx, "web as "+pod, func(ctx context.Context) error {
		ip, err := s.PodIP(ctx, namespace, pod)
		if err != nil {
			return err
		}
		testimony, err = lab.Testimony(ctx, ip+":8080", "/etc/settings", "/etc/single", "/etc/keys", "/var/run/secrets/kubernetes.io/serviceaccount")
		return err
	}, s.Kubelet)
	return testimony, err
}

func (s *site) gatewayTestimony(ctx context.Context) (witness.Testimony, error) {
	return lab.WaitTestimony(ctx, gatewayAddress, "/etc/settings", "/etc/keys", "/var/run/secrets/kubernetes.io/serviceaccount")
}

// checkpoints are the parents' names of the checkpoints that have a READY sandbox.
func (s *site) checkpoints(ctx context.Context) (names []string, err error) {
	sandboxes, err := s.Sandboxes(ctx)
	for _, b := range sandboxes {
		if of := b.Annotations[annotationCheckpointOf]; of != "" && b.State == runtime.PodSandboxState_SANDBOX_READY {
			names = append(names, of)
		}
	}
	slices.Sort(names)
	return names, err
}

// logLine is a line of the checkpointer's log.
type logLine struct {
	Time   time.Time `json:"time"`
	Level  string    `json:"level"`
	Msg    string    `json:"message"`
	Pod    string    `json:"pod"`
	To     string    `json:"to"`
	Action string    `json:"action"`

	text string
}

// log is what every copy of the checkpointer has logged since, in order of time.
func (s *site) log(since int64) logLines {
	files, err := filepath.Glob(lab.Logs + "/pods/" + namespace + "_pod-checkpointer-*/checkpointer/*.log")
	if err != nil {
		s.t.Fatal(err)
	}
	var lines logLines
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for scanner := bufio.NewScanner(bytes.NewReader(data)); scanner.Scan(); {
			// The CRI's log format: time, stream, tag, text.
			fields := strings.SplitN(scanner.Text(), " ", 4)
			written, err := time.Parse(time.RFC3339Nano, fields[0])
			if err != nil || len(fields) < 4 || written.UnixNano() < since {
				continue
			}
			line := logLine{text: written.Format("15:04:05.000 ") + fields[3]}
			_ = json.Unmarshal([]byte(fields[3]), &line) // what is not JSON is kept as text
			line.Time = written
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b logLine) int { return a.Time.Compare(b.Time) })
	return lines
}

type logLines []logLine

func (l logLines) String() string {
	var b strings.Builder
	for _, line := range l {
		b.WriteString(line.text + "\n")
	}
	return b.String()
}

// soon bounds a wait for what should take a moment, so that a failure is not seen only when the whole test runs out of
// time. A busy machine is given a lot.
func soon(ctx context.Context, what string, check func(context.Context) error, logs ...*lab.Component) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return lab.Wait(ctx, what, check, logs...)
}
