//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/uptime"
)

// TestUpgradeFromThePredecessor: bootkube's checkpointer, as of its last release, has left its files on the node, and ours
// arrives. Its checkpoint of a pod goes when ours is stored, those of pods that ours doesn't know stay for `cleanup`, and
// no pod is touched by any of it.
func TestUpgradeFromThePredecessor(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var web, gateway *uptime.Watch
	s := newSiteWith(ctx, t, site.Options{Before: func(ctx context.Context, s *site.Site) error {
		web, gateway = uptime.Begin(asWeb(s)), uptime.Begin(asGateway)
		return leavePredecessor(ctx, s)
	}})
	s.step("the predecessor's checkpoints of web and gateway are replaced", site.Soon(ctx, "the replacement", func(context.Context) error {
		return errors.Join(predecessorAbsent(s.Web), predecessorAbsent(s.Gateway))
	}))
	s.step("that of another pod is still there", site.Exists(predecessorFile(site.InactiveDir, "gone")))

	for name, watch := range map[string]*uptime.Watch{"web": web, "gateway": gateway} {
		if outages := watch.End(); len(outages) > 0 {
			t.Errorf("%s was down: %v: %v", name, outages, outages[0].Why)
		}
	}
}

func asGateway(ctx context.Context) error {
	_, err := lab.Testimony(ctx, site.GatewayAddress)
	return err
}

func asWeb(s *site.Site) func(context.Context) error {
	return func(ctx context.Context) error {
		ip, err := s.PodIP(ctx, site.Namespace, s.Web)
		if err == nil {
			_, err = lab.Testimony(ctx, ip+":8080")
		}
		return err
	}
}

// leavePredecessor writes stored checkpoints of web, of gateway, and of a pod that is no more, and an active one of the
// predecessor itself.
func leavePredecessor(ctx context.Context, s *site.Site) error {
	pods, err := s.Client().CoreV1().Pods(site.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Name == s.Web })
	gone, self := pods.Items[i], pods.Items[i]
	gone.Name, self.Name = "gone", "pod-checkpointer-of-old"
	for _, pod := range append(pods.Items, gone) {
		if err := leaveCheckpoint(site.InactiveDir, pod); err != nil {
			return err
		}
	}
	return leaveCheckpoint(lab.Manifests, self)
}

// leaveCheckpoint writes what bootkube's pkg/checkpoint wrote (sanitizeCheckpointPod in pod.go, manifest.go, secrets.go,
// configmap.go): the volume of the service account's token stayed, so kubelets since 1.21 refuse the manifest.
func leaveCheckpoint(dir string, parent corev1.Pod) error {
	pod := corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: parent.Name, Namespace: parent.Namespace, Labels: parent.Labels,
			Annotations: map[string]string{"checkpointer.alpha.coreos.com/checkpoint-of": parent.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: parent.Name, UID: parent.UID, Controller: new(true),
			}},
		},
		Spec: *parent.Spec.DeepCopy(),
	}
	pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount, pod.Spec.NodeName, pod.Spec.Affinity = "", "", "", nil
	for i, volume := range pod.Spec.Volumes {
		source := &pod.Spec.Volumes[i].VolumeSource
		switch {
		case volume.Secret != nil:
			*source = hostPath("checkpoint-secrets", parent, volume.Secret.SecretName)
		case volume.ConfigMap != nil:
			*source = hostPath("checkpoint-configmaps", parent, volume.ConfigMap.Name)
		default:
			continue
		}
		if err := os.MkdirAll(source.HostPath.Path, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(source.HostPath.Path, "password"), []byte("old"), 0o600); err != nil {
			return err
		}
	}
	manifest, err := json.Marshal(pod)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(predecessorFile(dir, parent.Name), manifest, 0o600)
}

func hostPath(kind string, parent corev1.Pod, object string) corev1.VolumeSource {
	return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
		Path: filepath.Join("/etc/kubernetes", kind, parent.Namespace, parent.Name, object),
	}}
}

func predecessorFile(dir, pod string) string {
	return filepath.Join(dir, site.Namespace+"-"+pod+".json")
}

// predecessorAbsent is an error if anything is left of the predecessor's checkpoint of a pod.
func predecessorAbsent(pod string) error {
	return errors.Join(
		site.Absent(predecessorFile(lab.Manifests, pod)),
		site.Absent(predecessorFile(site.InactiveDir, pod)),
		site.Absent(filepath.Join("/etc/kubernetes/checkpoint-secrets", site.Namespace, pod)),
		site.Absent(filepath.Join("/etc/kubernetes/checkpoint-configmaps", site.Namespace, pod)),
	)
}
