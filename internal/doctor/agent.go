package doctor

import (
	"fmt"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// agentKinds are about the checkpointer itself.
var agentKinds = []Kind{
	{
		Name: "no-agent", Severity: Error,
		Means:  "no copy of the agent acts: nothing is stored from now on, and the checkpoints need its static copy to be started",
		Remedy: "see why it does not run: kubectl get pods -n kube-system -l app.kubernetes.io/name=pod-checkpointer, or crictl ps -a --name checkpointer and crictl logs",
		find:   func(f *Facts) []string { return one(!f.Held, "nobody holds the agent's lock") },
	},
	{
		Name: "lock-foreign", Severity: Error,
		Means:  "something else holds the lock, such as the checkpointer of bootkube: the agent stands by and does nothing",
		Remedy: "delete the other's DaemonSet, then: checkpointer cleanup --predecessor",
		find: func(f *Facts) []string {
			return one(f.Held && f.Report == nil, "the lock is held, and by no agent that has told anything since boot")
		},
	},
	{
		Name: "no-self-checkpoint", Severity: Error,
		Means:  "the agent has no static copy: after a boot without an API server nobody starts the other checkpoints",
		Remedy: "annotate the agent's own pods checkpointer.alpha.coreos.com/checkpoint: \"true\", in a namespace that --namespaces names, and give it POD_NAME and POD_NAMESPACE, as deploy/base does",
		find: func(f *Facts) []string {
			own, known := f.self()
			for _, c := range own {
				if c.Active == checkpoint.Intact {
					return nil
				}
			}
			return one(known, "no manifest of the agent itself is in the static pod directory")
		},
	},
	{
		Name: "static-copy-down", Severity: Error,
		Means:  "the kubelet does not run the agent's static copy, so it does not read this directory, or rejects what is in it: after a boot nothing would start",
		Remedy: "compare the kubelet's staticPodPath with --manifests-dir, and look into the kubelet's log for \"pod-checkpointer\"; agents of k3s start no static pods without their server",
		find: func(f *Facts) (found []string) {
			own, _ := f.self()
			for _, c := range own {
				if f.RuntimeErr != nil || c.Active != checkpoint.Intact {
					continue
				}
				if s := f.sandbox(c); s != nil && s.Ready {
					return nil
				}
				found = append(found, fmt.Sprintf("%s is in the static pod directory, and no sandbox of it runs", c))
			}
			return found
		},
	},
}
