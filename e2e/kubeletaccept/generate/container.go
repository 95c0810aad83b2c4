package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (g *generator) container(initial bool) corev1.Container {
	c := corev1.Container{
		Name:                     g.name("c"),
		Image:                    pick(g, "example.com/app:1", "busybox", "app:latest"),
		ImagePullPolicy:          pick(g, "", corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent),
		Command:                  several(g, 2, func() string { return pick(g, "run", "$(A)", "$$(B)", "$(CKPT_K0)") }),
		Args:                     several(g, 2, func() string { return pick(g, "--token=$(TOKEN)", "x") }),
		WorkingDir:               pick(g, "", "/tmp"),
		TerminationMessagePolicy: pick(g, "", corev1.TerminationMessageFallbackToLogsOnError),
		Stdin:                    g.chance(0.1), TTY: g.chance(0.1),
		Resources:       g.resources(),
		SecurityContext: g.security(),
		VolumeMounts:    g.mounts(),
	}
	c.StdinOnce = c.Stdin && g.chance(0.5)
	c.Ports = g.ports()
	g.env(&c)
	if initial && g.chance(0.4) {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	if !initial || c.RestartPolicy != nil {
		c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = g.probe(c.Ports, true), g.probe(c.Ports, false), g.probe(c.Ports, true)
		c.Lifecycle = g.lifecycle(c.Ports)
	}
	return c
}

func (g *generator) resources() corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		amount := resource.MustParse(pick(g, "1", "7", "1500m"))
		if g.chance(0.3) {
			set(&r.Limits, name, amount)
		}
		if g.chance(0.3) {
			set(&r.Requests, name, amount)
		}
	}
	return r
}

func set(list *corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	if *list == nil {
		*list = make(corev1.ResourceList)
	}
	(*list)[name] = amount
}

func (g *generator) security() *corev1.SecurityContext {
	if g.chance(0.5) {
		return nil
	}
	security := &corev1.SecurityContext{
		Privileged: maybe(g, 0.2, true, false), RunAsUser: maybe(g, 0.3, int64(0), 1000), RunAsGroup: maybe(g, 0.2, int64(0), 1000),
		RunAsNonRoot: maybe(g, 0.2, false), ReadOnlyRootFilesystem: maybe(g, 0.3, true, false), SeccompProfile: g.seccomp(0.2),
	}
	if security.Privileged == nil || !*security.Privileged {
		security.AllowPrivilegeEscalation = maybe(g, 0.2, true)
	}
	if g.chance(0.4) {
		security.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}, Drop: []corev1.Capability{"ALL"}}
	}
	return security
}

// ports makes ports with names, of which some are host ports that no other container of the pod takes.
func (g *generator) ports() []corev1.ContainerPort {
	var ports []corev1.ContainerPort
	for i := range g.IntN(4) {
		port := corev1.ContainerPort{
			Name: pick(g, "", fmt.Sprintf("port-%d", i)), ContainerPort: 1 + g.Int32N(65535),
			Protocol: pick(g, "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		}
		if host := g.pod.Spec.HostNetwork; host || g.chance(0.3) {
			key := fmt.Sprint(port.ContainerPort)
			if g.hostPorts[key] {
				continue
			}
			g.hostPorts[key] = true
			if !host || g.chance(0.5) {
				port.HostPort, port.HostIP = port.ContainerPort, pick(g, "", "127.0.0.1", "0.0.0.0")
			}
		}
		ports = append(ports, port)
	}
	return ports
}

// port refers to one of the ports by number or by name; a name that no port has is legal too.
func (g *generator) port(ports []corev1.ContainerPort) intstr.IntOrString {
	if len(ports) > 0 && g.chance(0.7) {
		port := pick(g, ports...)
		if port.Name != "" && g.chance(0.7) {
			return intstr.FromString(port.Name)
		}
		return intstr.FromInt32(port.ContainerPort)
	}
	return pick(g, intstr.FromInt32(8080), intstr.FromString("no-such-port"))
}

func (g *generator) probe(ports []corev1.ContainerPort, restarts bool) *corev1.Probe {
	if g.chance(0.6) {
		return nil
	}
	probe := &corev1.Probe{InitialDelaySeconds: g.Int32N(10), PeriodSeconds: g.Int32N(20), FailureThreshold: g.Int32N(5)}
	if restarts {
		probe.TerminationGracePeriodSeconds = maybe(g, 0.2, int64(5))
	}
	switch g.IntN(4) {
	case 0:
		probe.Exec = &corev1.ExecAction{Command: []string{"true"}}
	case 1:
		probe.HTTPGet = &corev1.HTTPGetAction{Path: "/", Port: g.port(ports), Scheme: pick(g, "", corev1.URISchemeHTTPS), Host: pick(g, "", "127.0.0.1")}
	case 2:
		probe.TCPSocket = &corev1.TCPSocketAction{Port: g.port(ports)}
	default:
		probe.GRPC = &corev1.GRPCAction{Port: 1 + g.Int32N(65535), Service: new("s")}
	}
	return probe
}

func (g *generator) lifecycle(ports []corev1.ContainerPort) *corev1.Lifecycle {
	if g.chance(0.7) {
		return nil
	}
	hook := func() *corev1.LifecycleHandler {
		return pick(g, nil,
			&corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
			&corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: g.port(ports)}},
			&corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: g.port(ports)}},
			&corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}})
	}
	return &corev1.Lifecycle{PostStart: hook(), PreStop: hook()}
}
