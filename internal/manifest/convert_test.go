package manifest

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var testOptions = Options{
	AssetsDir: "/etc/kubernetes/checkpoint-assets", NodeName: "node1", KubeletVersion: "v1.37.2",
	AgentImage: "example.com/checkpointer:1", ServiceHost: "10.96.0.1", ServicePort: "443",
}

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	change(pod)
	return pod
}

func refused(t *testing.T, pod *corev1.Pod, opts Options) *Refusal {
	t.Helper()
	_, err := Convert(pod, References{}, opts)
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got error %v, want a refusal", err)
	}
	return refusal
}

func TestCheckpointIsRefused(t *testing.T) {
	first, err := Convert(newPod(func(*corev1.Pod) {}), References{}, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if refusal := refused(t, first.Pod, testOptions); !strings.Contains(refusal.Error(), "already a checkpoint") {
		t.Errorf("got %v", refusal)
	}
}

func TestAllReasonsAtOnce(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.RuntimeClassName = new("kata")
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}
	})
	refusal := refused(t, pod, testOptions)
	for _, path := range []string{"spec.restartPolicy", "spec.runtimeClassName", "spec.resourceClaims", "spec.volumes[v].csi"} {
		if !strings.Contains(refusal.Error(), path+": ") {
			t.Errorf("%s is missing in:\n%v", path, refusal)
		}
	}
}

func TestNamesThatAreTooLong(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, name, node int
		want                  string
	}{
		"pod name": {10, 250, 5, "253 are allowed"},
		"logs":     {60, 155, 10, "255 are allowed"},
		"just fit": {60, 150, 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(func(pod *corev1.Pod) {
				pod.Namespace, pod.Name = strings.Repeat("n", test.namespace), strings.Repeat("p", test.name)
			})
			opts := testOptions
			opts.NodeName = strings.Repeat("x", test.node)
			_, err := Convert(pod, References{}, opts)
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestConvertDoesNotChangeItsInput(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		pod.Spec.HostNetwork = true
		pod.Labels = map[string]string{"pod-template-hash": "h"}
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 80}}
	})
	before := pod.DeepCopy()
	if _, err := Convert(pod, References{}, testOptions); err != nil {
		t.Fatal(err)
	}
	if before.String() != pod.String() {
		t.Error("the pod was changed")
	}
}

// The kubelet reads neither; a checkpoint must not be stored that it would ignore.
func TestWhatIsTooLargeForTheKubelet(t *testing.T) {
	annotations := func(size int) *corev1.Pod {
		return newPod(func(pod *corev1.Pod) { pod.Annotations = map[string]string{"a/b": strings.Repeat("x", size)} })
	}
	if refusal := refused(t, annotations(256<<10-60), testOptions); refusal.Findings[0].Path != "metadata.annotations" {
		t.Errorf("got %v", refusal)
	}
	if _, err := Convert(annotations(255<<10), References{}, testOptions); err != nil {
		t.Errorf("annotations that fit: %v", err)
	}
	if refusal := refused(t, newPod(func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = []string{strings.Repeat("x", 10<<20)} }), testOptions); refusal.Findings[0].Path != "spec" {
		t.Errorf("got %v", refusal)
	}
}
