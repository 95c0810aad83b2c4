package generate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (g *generator) spec() {
	spec := &g.pod.Spec
	spec.HostNetwork = g.chance(0.4)
	spec.HostPID, spec.HostIPC = g.chance(0.15), g.chance(0.1)
	if !spec.HostPID {
		spec.ShareProcessNamespace = maybe(g, 0.2, true, false)
	}
	if !spec.HostNetwork && !spec.HostPID && !spec.HostIPC {
		spec.HostUsers = maybe(g, 0.1, true, false)
	}
	g.dns()
	g.hostname()
	g.scheduling()
	spec.RestartPolicy = pick(g, "", corev1.RestartPolicyAlways)
	spec.TerminationGracePeriodSeconds = maybe(g, 0.3, int64(2), 300)
	spec.ActiveDeadlineSeconds = maybe(g, 0.1, int64(60))
	spec.AutomountServiceAccountToken = maybe(g, 0.2, true, false)
	spec.EnableServiceLinks = maybe(g, 0.3, true, false)
	spec.ImagePullSecrets = several(g, 2, func() corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: pick(g, "a", "b")} })
	spec.HostAliases = several(g, 2, func() corev1.HostAlias { return corev1.HostAlias{IP: "192.0.2.1", Hostnames: []string{"example.com"}} })
	if g.chance(0.2) {
		spec.OS = &corev1.PodOS{Name: corev1.Linux}
	}
	spec.SecurityContext = g.podSecurity()
	g.volumes()
	for range g.IntN(3) {
		spec.InitContainers = append(spec.InitContainers, g.container(true))
	}
	for range 1 + g.IntN(3) {
		spec.Containers = append(spec.Containers, g.container(false))
	}
	if g.chance(0.1) {
		g.podResources()
	}
}

func (g *generator) dns() {
	spec := &g.pod.Spec
	spec.DNSPolicy = pick(g, "", corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	if spec.DNSPolicy == corev1.DNSNone || g.chance(0.1) {
		spec.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: []string{"192.0.2.53"}, Searches: []string{"example.com"},
			Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("5")}},
		}
	}
}

func (g *generator) hostname() {
	spec := &g.pod.Spec
	spec.Hostname, spec.Subdomain = pick(g, "", "", "host"), pick(g, "", "", "sub")
	switch {
	case g.chance(0.1):
		spec.SetHostnameAsFQDN = new(g.chance(0.5))
	case !spec.HostNetwork && g.chance(0.1):
		spec.HostnameOverride = new("override.example.com")
	}
}

func (g *generator) scheduling() {
	spec := &g.pod.Spec
	spec.SchedulerName = pick(g, "", "default-scheduler", "other")
	spec.NodeSelector = g.stringMap("kubernetes.io/os", "node-role.kubernetes.io/control-plane")
	spec.Tolerations = several(g, 2, func() corev1.Toleration {
		return pick(g, corev1.Toleration{Operator: corev1.TolerationOpExists},
			corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))})
	})
	if class := pick(g, "", "system-node-critical", "mine"); class != "" {
		spec.PriorityClassName, spec.Priority = class, new(pick(g, int32(2000001000), 5, -5))
		spec.PreemptionPolicy = maybe(g, 0.5, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	spec.ReadinessGates = several(g, 1, func() corev1.PodReadinessGate { return corev1.PodReadinessGate{ConditionType: "example.com/ready"} })
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	if g.chance(0.2) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}}
	}
	if g.chance(0.4) {
		spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{NodeName}}},
			}}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: "kubernetes.io/hostname"}}},
		}
	}
}

func (g *generator) podSecurity() *corev1.PodSecurityContext {
	if g.chance(0.4) {
		return nil
	}
	security := &corev1.PodSecurityContext{
		RunAsUser: maybe(g, 0.4, int64(0), 1000, 65534), RunAsGroup: maybe(g, 0.2, int64(0), 1000),
		RunAsNonRoot: maybe(g, 0.2, false), FSGroup: maybe(g, 0.3, int64(0), 2000),
		FSGroupChangePolicy:      maybe(g, 0.2, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch),
		SupplementalGroups:       several(g, 2, func() int64 { return g.Int64N(5000) }),
		SupplementalGroupsPolicy: maybe(g, 0.2, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict),
		SeccompProfile:           g.seccomp(0.3),
	}
	if g.chance(0.2) {
		security.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t", Level: "s0"}
	}
	if !g.pod.Spec.HostNetwork && g.chance(0.1) {
		security.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	if g.chance(0.2) {
		security.AppArmorProfile = pick(g,
			&corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined},
			&corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: new("mine")})
	}
	return security
}

func (g *generator) seccomp(p float64) *corev1.SeccompProfile {
	if !g.chance(p) {
		return nil
	}
	return pick(g,
		&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
		&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: new("profiles/x.json")})
}

// podResources adds resources of the pod as a whole: enough for all containers together.
func (g *generator) podResources() {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi")}
	g.pod.Spec.Resources = &corev1.ResourceRequirements{Requests: requests}
	if g.chance(0.5) {
		g.pod.Spec.Resources.Limits = requests.DeepCopy()
	}
}
