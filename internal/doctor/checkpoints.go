package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// checkpointKinds are about what lies on disk.
var checkpointKinds = []Kind{
	{
		Name: "refused", Severity: Error,
		Means:  "the pod can't be a static pod and has no checkpoint: it would not come back",
		Remedy: "change the pod as the reason says; checkpointer render -f shows the result beforehand",
		find:   func(f *Facts) []string { return f.refused(false) },
	},
	{
		Name: "no-checkpoint", Severity: Error,
		Means:  "the pod asks for a checkpoint and has none yet: it would not come back",
		Remedy: "a first checkpoint is stored when every container of the pod runs: look at the pod, and at the agent's log",
		find: func(f *Facts) []string {
			return f.podsWhere(func(row status.Lineage) bool {
				return row.Phase == checkpoint.Absent.String() && row.Pod != "" && !f.isRefused(row.UID)
			})
		},
	},
	{
		Name: "stored-lost", Severity: Error,
		Means:  "the stored manifest is gone or damaged, and the agent has not put it back: it would not be started",
		Remedy: "look into the agent's log for action failed; if no agent runs, start it",
		find: func(f *Facts) []string {
			return f.podsWhere(func(row status.Lineage) bool {
				return row.Generation != "" && !slices.ContainsFunc(f.Checkpoints, func(c Checkpoint) bool {
					return string(c.Lineage) == row.Lineage && c.Stored == checkpoint.Intact
				})
			})
		},
	},
	{
		Name: "assets-incomplete", Severity: Error,
		Means:  "copies of Secrets, ConfigMaps or tokens are missing or damaged: the checkpoint would not be started",
		Remedy: "they are written again while the pod runs and the agent does: look into its log for action failed",
		find: func(f *Facts) (found []string) {
			for _, c := range f.Checkpoints {
				if c.AssetErr != nil {
					found = append(found, fmt.Sprintf("%s: %v", &c, c.AssetErr))
				} else if len(c.Missing) > 0 {
					found = append(found, fmt.Sprintf("%s: %s", &c, strings.Join(c.Missing, ", ")))
				}
			}
			return found
		},
	},
	{
		Name: "image-missing", Severity: Error,
		Means:  "the image is not on the node: without a registry in reach the checkpoint would not start",
		Remedy: "pull it (crictl pull), and see why it went: the kubelet's image garbage collection takes what no pod uses",
		find: func(f *Facts) (found []string) {
			for _, c := range f.Checkpoints {
				for _, image := range slices.Compact(slices.Sorted(slices.Values(c.images()))) {
					if slices.Contains(f.Runtime.Missing, image) {
						found = append(found, fmt.Sprintf("%s: %s", &c, image))
					}
				}
			}
			return found
		},
	},
	{
		Name: "manifest-twice", Severity: Error,
		Means:  "another file in the static pod directory declares the same pod: the agent does not start the checkpoint beside it",
		Remedy: "remove the file that is not the agent's",
		find: func(f *Facts) (found []string) {
			for _, c := range f.Checkpoints {
				if len(c.Twins) > 0 {
					found = append(found, fmt.Sprintf("%s: %s", &c, strings.Join(c.Twins, ", ")))
				}
			}
			return found
		},
	},
	{
		Name: "manifest-ignored", Severity: Error,
		Means:  "the checkpoint is before the kubelet, and the kubelet made no sandbox of it: it rejected it",
		Remedy: "look into the kubelet's log for the pod's name: a host port that is taken, resources that are not there, a field that it does not accept. The agent offers it again by itself",
		find: func(f *Facts) (found []string) {
			for i := range f.Checkpoints {
				c := &f.Checkpoints[i]
				if f.RuntimeErr == nil && c.Active == checkpoint.Intact && !f.isSelf(c) && f.sandbox(c) == nil {
					found = append(found, c.String())
				}
			}
			return found
		},
	},
	{
		Name: "checkpoint-down", Severity: Error,
		Means:  "the checkpoint was started and does not come up, and there is no other generation to try",
		Remedy: "look at its containers: crictl ps -a, crictl logs",
		find: func(f *Facts) []string {
			return f.podsWhere(func(row status.Lineage) bool { return row.Reason == string(checkpoint.ReasonCheckpointStuck) })
		},
	},
}

// podsWhere names the pods of the lineages of which something is true.
func (f *Facts) podsWhere(is func(status.Lineage) bool) (pods []string) {
	for _, row := range f.rows() {
		if is(row) {
			pods = append(pods, row.Namespace+"/"+row.Pod)
		}
	}
	return pods
}

// refused are the pods that can't be checkpointed, with or without an earlier checkpoint.
func (f *Facts) refused(earlier bool) (found []string) {
	if f.Report == nil {
		return nil
	}
	for _, refused := range f.Report.Refused {
		has := slices.ContainsFunc(f.rows(), func(row status.Lineage) bool { return row.UID == refused.UID && row.Generation != "" })
		if has == earlier {
			found = append(found, fmt.Sprintf("%s/%s: %s", refused.Namespace, refused.Pod, strings.Join(refused.Reasons, "; ")))
		}
	}
	return found
}

func (f *Facts) isRefused(uid string) bool {
	return slices.ContainsFunc(f.Report.Refused, func(r status.Refused) bool { return r.UID == uid })
}
