//go:build linux

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

// TestAPIServerOnNode sees that the lab can run its only API server in a pod of
// the node, through a black hole and a power cut.
func TestAPIServerOnNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	l := timeline{t, time.Now()}
	cluster, node := l.start(ctx)
	l.step("node is cut off", node.BlackHole())
	_, err := cluster.Kubectl(ctx, "get", "nodes")
	l.step("the admin isn't", err)
	l.step("kubelet is stopped", node.Kubelet.Stop(ctx))
	l.step("kubelet is started", node.Kubelet.Start(ctx))
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := node.WaitReady(short); err == nil {
		t.Error("the kubelet reaches the API server through a black hole")
	}
	l.step("black hole ends", node.EndBlackHole())
	l.step("node is Ready", node.WaitReady(ctx))

	l.step("API server image is there", node.ImportProgram(ctx, "kube-apiserver"))
	l.step("API server is stopped", cluster.APIServer.Stop(ctx))
	l.step("API address is the node's", cluster.MoveAPIToNode())
	l.step("manifest is written", os.WriteFile(filepath.Join(lab.Manifests, "kube-apiserver.yaml"), apiServerPod(t, cluster), 0o644))
	l.step("API answers", apiAnswers(ctx, cluster, node))
	l.step("power cut", node.PowerCut(ctx))
	l.step("power on", node.PowerOn(ctx))
	l.step("API answers", apiAnswers(ctx, cluster, node))
	l.step("node is Ready", node.WaitReady(ctx))
}

func apiAnswers(ctx context.Context, cluster *lab.Cluster, node *lab.Node) error {
	return lab.Wait(ctx, "the API to answer", func(ctx context.Context) error {
		_, err := cluster.Client().CoreV1().Nodes().Get(ctx, lab.NodeName, metav1.GetOptions{})
		return err
	}, node.Kubelet)
}

// apiServerPod is a static pod of the cluster's API server.
func apiServerPod(t *testing.T, cluster *lab.Cluster) []byte {
	t.Helper()
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Namespace: "kube-system"},
		Spec: corev1.PodSpec{
			HostNetwork: true,
			Containers: []corev1.Container{{
				Name:            "kube-apiserver",
				Image:           lab.ProgramImage("kube-apiserver"),
				ImagePullPolicy: corev1.PullNever,
				Args:            cluster.APIServerArgs(cluster.PKI()),
				VolumeMounts:    []corev1.VolumeMount{{Name: "pki", MountPath: cluster.PKI(), ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{
				Name:         "pki",
				VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: cluster.PKI()}},
			}},
		},
	}
	manifest, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}
