package kubeletaccept

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// facts lists what is wrong with a checkpoint as the kubelet decoded and defaulted it, whatever the parent was.
func facts(j *judgment) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	spec, parent := &j.decoded.Spec, &j.parent.Spec

	keeps := !parent.HostNetwork && j.parent.Annotations[manifest.AnnotationKeepHostPorts] == "true"
	if ports := util.GetHostPorts(j.decoded); len(ports) > 0 && !keeps {
		wrong("the kubelet reserves %d host ports", len(ports))
	}
	for _, problem := range []struct {
		is   bool
		text string
	}{
		{spec.ServiceAccountName != "" || spec.DeprecatedServiceAccount != "", "it has a service account"},
		{spec.NodeSelector != nil || spec.Affinity != nil, "it selects nodes"},
		{spec.TopologySpreadConstraints != nil || spec.SchedulingGates != nil || spec.ReadinessGates != nil, "it wants a scheduler or readiness gates"},
		{spec.ActiveDeadlineSeconds != nil, "it ends by itself"},
		{len(spec.ImagePullSecrets) > 0 || len(spec.EphemeralContainers) > 0, "it has pull secrets or ephemeral containers"},
		{spec.RestartPolicy != corev1.RestartPolicyAlways, "it is not always restarted"},
		{spec.EnableServiceLinks == nil || *spec.EnableServiceLinks, "it has service links"},
		{len(j.decoded.OwnerReferences)+len(j.decoded.Finalizers)+len(j.decoded.ManagedFields) > 0, "it has owners, finalizers or managed fields"},
		{j.decoded.UID == j.parent.UID, "it has the UID of its parent"},
		{j.decoded.DeletionTimestamp != nil, "it is being deleted"},
		{!spec.HostNetwork && spec.Hostname == "" && spec.HostnameOverride == nil && !strings.Contains(j.parent.Name, "."), "its hostname is not its parent's"},
		{spec.HostNetwork != parent.HostNetwork || spec.HostPID != parent.HostPID || spec.HostIPC != parent.HostIPC, "its namespaces differ"},
		{j.decoded.Annotations[manifest.AnnotationCheckpointOf] != j.parent.Name, "it does not say what it is"},
	} {
		if problem.is {
			wrong("%s", problem.text)
		}
	}
	for key := range j.decoded.Annotations {
		if key == "kubernetes.io/config.mirror" || key == corev1.LastAppliedConfigAnnotation || key == manifest.AnnotationCheckpoint {
			wrong("it has the annotation %s", key)
		}
	}
	problems = append(problems, keptFacts(j)...)
	problems = append(problems, containerFacts(j)...)
	return append(problems, volumeFacts(j)...)
}

// keptFacts compares what means the same without an API server.
func keptFacts(j *judgment) []string {
	var problems []string
	same := func(what string, want, got any) {
		if !equality.Semantic.DeepEqual(want, got) {
			problems = append(problems, fmt.Sprintf("%s: %v is not %v", what, got, want))
		}
	}
	type kept struct {
		Grace, User, Options, DNS, Names, Priority any
	}
	of := func(spec *corev1.PodSpec) kept {
		return kept{
			Grace:    spec.TerminationGracePeriodSeconds,
			User:     []any{spec.SecurityContext, spec.HostUsers, spec.ShareProcessNamespace},
			Options:  []any{spec.OS},
			DNS:      []any{spec.DNSPolicy, spec.DNSConfig, spec.HostAliases},
			Names:    []any{spec.Subdomain, spec.SetHostnameAsFQDN, spec.HostnameOverride},
			Priority: []any{spec.PriorityClassName, spec.Priority, spec.PreemptionPolicy},
		}
	}
	same("spec", of(&j.parent.Spec), of(&j.decoded.Spec))
	same("tolerations", j.parent.Spec.Tolerations, j.decoded.Spec.Tolerations[:min(len(j.parent.Spec.Tolerations), len(j.decoded.Spec.Tolerations))])
	decoded := make(map[string]*corev1.Container)
	var order, decodedOrder []string
	visit(j.decoded, func(c *corev1.Container) {
		decoded[c.Name] = c
		decodedOrder = append(decodedOrder, c.Name)
	})
	visit(j.parent, func(parent *corev1.Container) {
		order = append(order, parent.Name)
		want, got := parent.DeepCopy(), decoded[parent.Name].DeepCopy()
		for _, c := range []*corev1.Container{want, got} { // what is compared elsewhere, or may differ
			c.Ports, c.Env, c.EnvFrom, c.Resources, c.ResizePolicy, c.ImagePullPolicy = nil, nil, nil, corev1.ResourceRequirements{}, nil, ""
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
			for i := range c.VolumeMounts {
				c.VolumeMounts[i].ReadOnly = false
			}
		}
		same("container "+parent.Name, want, got)
	})
	same("order", order, decodedOrder[len(decodedOrder)-len(order):])
	return problems
}

func containerFacts(j *judgment) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	parents := make(map[string]*corev1.Container)
	visit(j.parent, func(c *corev1.Container) { parents[c.Name] = c })
	visit(j.decoded, func(c *corev1.Container) {
		for name, quantity := range c.Resources.Requests {
			if !quantity.IsZero() && j.parent.Annotations[manifest.AnnotationKeepRequests] != "true" {
				wrong("container %s requests %s of %s", c.Name, quantity.String(), name)
			}
		}
		if c.ImagePullPolicy == corev1.PullAlways {
			wrong("container %s always pulls", c.Name)
		}
		if len(c.EnvFrom) > 0 {
			wrong("container %s has envFrom", c.Name)
		}
		parent := parents[c.Name]
		if parent == nil { // ours, which must be root
			if security := c.SecurityContext; security == nil || *security.RunAsUser != 0 || *security.RunAsNonRoot {
				wrong("our container %s is not root", c.Name)
			}
			return
		}
		if got, want := handlerPorts(c), handlerPorts(parent); !slices.Equal(got, want) {
			wrong("container %s is probed on %v, not %v", c.Name, got, want)
		}
		if c.Image != parent.Image || !slices.Equal(c.Command, parent.Command) || !slices.Equal(c.Args, parent.Args) || len(c.VolumeMounts) != len(parent.VolumeMounts) {
			wrong("container %s runs something else", c.Name)
		}
		for name, limit := range parent.Resources.Limits {
			if got := c.Resources.Limits[name]; got.Cmp(limit) != 0 {
				wrong("container %s is limited to %s of %s, not %s", c.Name, got.String(), name, limit.String())
			}
		}
	})
	if r := j.decoded.Spec.Resources; r != nil && j.parent.Annotations[manifest.AnnotationKeepRequests] != "true" {
		for name, quantity := range r.Requests {
			if !quantity.IsZero() {
				wrong("the pod requests %s of %s", quantity.String(), name)
			}
		}
	}
	return problems
}

// volumeFacts checks that what the kubelet would not write to can't be written to, and that each asset is a volume.
func volumeFacts(j *judgment) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	paths := make(map[string]string)
	for _, v := range j.decoded.Spec.Volumes {
		if v.HostPath != nil && strings.HasPrefix(v.HostPath.Path, options.AssetsDir+"/") {
			paths[v.Name] = v.HostPath.Path
			if v.HostPath.Type == nil || *v.HostPath.Type != corev1.HostPathDirectory {
				wrong("volume %s: its directory may be missing", v.Name)
			}
		}
	}
	assets := make(map[string]string)
	for _, asset := range j.result.Assets {
		assets[asset.Volume] = path.Join(options.AssetsDir, j.parent.Namespace+"_"+j.parent.Name, asset.Volume)
	}
	if !maps.Equal(paths, assets) {
		wrong("its volumes are %v and its assets %v", paths, assets)
	}
	decoded := make(map[string]corev1.Volume)
	for _, v := range j.decoded.Spec.Volumes {
		decoded[v.Name] = v
	}
	readOnly := maps.Clone(paths)
	for _, v := range j.parent.Spec.Volumes {
		got, ok := decoded[v.Name]
		if ok && (v.HostPath != nil || v.EmptyDir != nil || v.NFS != nil) && !equality.Semantic.DeepEqual(got, v) {
			wrong("volume %s is not what it was", v.Name)
		}
		if claim := v.PersistentVolumeClaim; ok && claim != nil && claim.ReadOnly && (got.NFS == nil || !got.NFS.ReadOnly) {
			readOnly[v.Name] = v.Name
		}
	}
	used := make(map[string]bool)
	visit(j.decoded, func(c *corev1.Container) {
		for _, mount := range c.VolumeMounts {
			used[mount.Name] = true
			if readOnly[mount.Name] != "" && !mount.ReadOnly {
				wrong("container %s can write to %s", c.Name, mount.Name)
			}
		}
	})
	for _, v := range j.decoded.Spec.Volumes {
		if !used[v.Name] {
			wrong("nobody mounts volume %s, and the kubelet would not have made it", v.Name)
		}
	}
	return problems
}

func visit(pod *corev1.Pod, f func(*corev1.Container)) {
	podutil.VisitContainers(&pod.Spec, podutil.InitContainers|podutil.Containers, func(c *corev1.Container, _ podutil.ContainerType) bool {
		f(c)
		return true
	})
}

// handlerPorts lists the ports of a container's probes and hooks, as the kubelet finds them; 0 is one that it does not.
func handlerPorts(c *corev1.Container) []int {
	var ports []int
	add := func(http *corev1.HTTPGetAction, tcp *corev1.TCPSocketAction) {
		if http != nil {
			port, _ := probe.ResolveContainerPort(http.Port, c)
			ports = append(ports, max(port, 0))
		}
		if tcp != nil {
			port, _ := probe.ResolveContainerPort(tcp.Port, c)
			ports = append(ports, max(port, 0))
		}
	}
	for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p != nil {
			add(p.HTTPGet, p.TCPSocket)
		}
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				add(hook.HTTPGet, hook.TCPSocket)
			}
		}
	}
	return ports
}
