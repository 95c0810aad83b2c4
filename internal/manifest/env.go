package manifest

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// convertEnv resolves what the kubelet would ask the API server for.
func (c *conversion) convertEnv(container *corev1.Container, path string) {
	if len(container.EnvFrom) > 0 {
		c.refuse(path+".envFrom", "not covered yet", "")
	}
	env := c.serviceEnv(container)
	for _, v := range container.Env {
		if v.ValueFrom == nil {
			env = append(env, v)
			continue
		}
		path := item(path, "env", v.Name)
		envSourceFields.apply(v.ValueFrom, path+".valueFrom", c.report)
		switch {
		case v.ValueFrom.ConfigMapKeyRef != nil, v.ValueFrom.SecretKeyRef != nil:
			c.refuse(path, "not covered yet", "")
		case v.ValueFrom.FieldRef != nil:
			env = append(env, c.fieldEnv(v))
		default:
			env = append(env, v)
		}
	}
	container.Env = env
}

// serviceEnv is where a client in the pod finds the API server. The kubelet gives a static pod no such variables when
// it starts it without an API server (k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, getServiceEnvVarMap).
func (c *conversion) serviceEnv(container *corev1.Container) []corev1.EnvVar {
	var env []corev1.EnvVar
	for _, v := range []corev1.EnvVar{
		{Name: "KUBERNETES_SERVICE_HOST", Value: c.opts.ServiceHost},
		{Name: "KUBERNETES_SERVICE_PORT", Value: c.opts.ServicePort},
	} {
		set := slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == v.Name })
		if v.Value != "" && !set {
			env = append(env, v)
		}
	}
	return env
}

// literal is a variable whose value the kubelet passes on as it is: it expands $(NAME) in a value that the manifest
// holds, and makes one dollar of two (k8s.io/kubernetes/third_party/forked/golang/expansion).
func literal(name, value string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")}
}
