package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	serviceHost = "KUBERNETES_SERVICE_HOST"
	servicePort = "KUBERNETES_SERVICE_PORT"
)

// serviceEnv is where a client in the pod finds the API server, to stand in front of env. The kubelet gives a static pod
// no such variables when it starts it without an API server (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go,
// getServiceEnvVarMap). Whatever the pod sets itself overrides them; but what stands before may refer to them.
func (c *conversion) serviceEnv(env []corev1.EnvVar) []corev1.EnvVar {
	var service []corev1.EnvVar
	for _, v := range []corev1.EnvVar{{Name: serviceHost, Value: c.opts.ServiceHost}, {Name: servicePort, Value: c.opts.ServicePort}} {
		if v.Value != "" && !setsFirst(env, v.Name) {
			service = append(service, v)
		}
	}
	return service
}

// setsFirst says whether env sets a variable for certain, and before anything in it refers to the variable.
func setsFirst(env []corev1.EnvVar, name string) bool {
	for _, v := range env {
		if slices.Contains(referencesIn(v.Value), name) {
			return false
		}
		if v.Name == name {
			source := v.ValueFrom
			return source == nil || source.FileKeyRef == nil || source.FileKeyRef.Optional == nil || !*source.FileKeyRef.Optional
		}
	}
	return false
}

// warnAboutServiceLinks tells of $(NAME) where the kubelet fills in the address of a Service, which it does not know
// without an API server: the text then stays as it is written.
func (e *environment) warnAboutServiceLinks(env []corev1.EnvVar) {
	set := make(map[string]bool)
	warn := func(where, text string) {
		for _, name := range referencesIn(text) {
			if !set[name] && isServiceLink(name) {
				e.warn(where, "the address of the Service in $("+name+") is not known without an API server, and the text stays as it is", "name the Service by its DNS name or its address")
			}
		}
	}
	for _, v := range env {
		warn(item(e.path, "env", v.Name), v.Value)
		set[v.Name] = true
	}
	for _, text := range e.container.Command {
		warn(e.path+".command", text)
	}
	for _, text := range e.container.Args {
		warn(e.path+".args", text)
	}
}

// warnAboutService tells that a client in the pod won't find the API server by its variables.
func (c *conversion) warnAboutService() {
	if c.opts.ServiceHost != "" && c.opts.ServicePort != "" {
		return
	}
	for container := range containersOf(&c.pod.Spec) {
		set := func(name string) bool {
			return slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		}
		if !set(serviceHost) || !set(servicePort) {
			c.warn("spec.enableServiceLinks", "the address of the API server inside the cluster is not known, so that the containers get no "+serviceHost+" and "+servicePort, "")
			return
		}
	}
}

// referencesIn lists the names in a text that the kubelet expands, by the syntax of
// k8s.io/kubernetes/third_party/forked/golang/expansion.Expand: $(NAME) is a reference and $$(NAME) is not.
func referencesIn(text string) []string {
	var names []string
	for {
		_, rest, found := strings.Cut(text, "$")
		if !found || rest == "" {
			return names
		}
		text = rest
		if rest[0] == '$' {
			text = rest[1:]
		} else if name, after, closed := strings.Cut(rest, ")"); rest[0] == '(' && closed {
			names = append(names, name[1:])
			text = after
		}
	}
}

// isServiceLink says whether a name is one that k8s.io/kubernetes/pkg/kubelet/envvars.FromServices makes.
func isServiceLink(name string) bool {
	return strings.HasSuffix(name, "_SERVICE_HOST") || strings.Contains(name, "_SERVICE_PORT") || strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_PORT_")
}
