package doctor

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// podKinds are about how a checkpoint differs from its pod.
var podKinds = []Kind{
	{
		Name: "refused-earlier-kept", Severity: Warning,
		Means:  "the pod as it is now can't be a static pod: an earlier one of it would come back",
		Remedy: "change the pod as the reason says",
		find:   func(f *Facts) []string { return f.refused(true) },
	},
	{
		Name: "outdated", Severity: Warning,
		Means:  "the pod has changed since its checkpoint was stored: the earlier one would come back",
		Remedy: "wait until the pod has been Ready for --promote-after; one that is not Ready does not replace the last good checkpoint",
		find: eachRow(func(row status.Lineage) bool {
			return row.Current != nil && !*row.Current && row.Generation != ""
		}),
	},
	{
		Name: "stuck", Severity: Warning,
		Means:  "the kubelet manages the pod in vain, and its checkpoint does the work",
		Remedy: "look at the pod: kubectl describe pod, crictl logs",
		find:   eachRow(func(row status.Lineage) bool { return row.Stuck != "" && !row.Self }),
	},
	{
		Name: "image-needs-secret", Severity: Warning,
		Means:  "the pod's image may have been pulled with a Secret, which a static pod can't have: from 1.35 on, the kubelet may refuse the image to the checkpoint",
		Remedy: "give the credentials to the node, or set imagePullCredentialsVerificationPolicy in the kubelet's configuration",
		find: eachRow(func(row status.Lineage) bool {
			return strings.Contains(strings.Join(row.Warnings, "\n"), "spec.imagePullSecrets:")
		}),
	},
	{
		Name: "host-port-gap", Severity: Warning,
		Means:  "checkpoint and pod want the same port of the node: when the pod returns, there is a gap of about the time that it takes to start",
		Remedy: "if two of it can share the port (SO_REUSEPORT), annotate the pod checkpointer.alpha.coreos.com/handover: ready; else nothing is wrong",
		find:   eachRow(func(row status.Lineage) bool { return row.Handover == "created" && !row.Self }),
	},
	{
		Name: "oom-first", Severity: Warning,
		Means:  "the pod is Guaranteed and its checkpoint is not, because its requests would count twice: when memory runs out, it is among the first to be killed",
		Remedy: "give it the priority class system-node-critical, or annotate it checkpointer.alpha.coreos.com/keep-requests: \"true\" if the node has room for both",
		find: func(f *Facts) (found []string) {
			for _, row := range f.rows() {
				for _, c := range f.Checkpoints {
					if string(c.Lineage) == row.Lineage && row.QOSClass == string(corev1.PodQOSGuaranteed) && c.isKilledFirst() {
						found = append(found, c.String())
					}
				}
			}
			return found
		},
	},
}

// nodeCritical is the priority from which on the kubelet protects a pod from the OOM killer whatever it requests
// (k8s.io/kubernetes/pkg/kubelet/qos.GetContainerOOMScoreAdjust; scheduling.SystemCriticalPriority + 1000).
const nodeCritical = 2_000_001_000

func (c *Checkpoint) isKilledFirst() bool {
	critical := c.Pod.Spec.Priority != nil && *c.Pod.Spec.Priority >= nodeCritical
	return !critical && c.Pod.Annotations[manifest.AnnotationKeepRequests] != "true"
}

// eachRow finds the lineages of which is holds.
func eachRow(is func(status.Lineage) bool) func(*Facts) []string {
	return func(f *Facts) (found []string) {
		for _, row := range f.rows() {
			if is(row) {
				found = append(found, fmt.Sprintf("%s/%s", row.Namespace, row.Pod))
			}
		}
		return found
	}
}
