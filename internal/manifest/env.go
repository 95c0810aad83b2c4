package manifest

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"
)

// environment is the conversion of one container's variables.
type environment struct {
	*conversion
	container *corev1.Container // its variables are still the parent's
	path      string
	from      map[string]value // what envFrom gives, by name
	parts     map[string]bool  // keys of the file that have a variable of their own
	prefix    string           // of those variables' names
}

// value is a variable's value, whether it is a Secret's, and the path of what refers to it.
type value struct {
	text   string
	secret bool
	path   string
}

// convertEnv resolves the variables that the kubelet would ask the API server for, in the order and with the precedence
// of k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, makeEnvironmentVariables: what envFrom names comes first, later
// sources override earlier ones, and env overrides them all. An optional variable that can't be resolved is left out,
// and does not hide one of the same name before it.
func (c *conversion) convertEnv(container *corev1.Container, path string) {
	e := &environment{conversion: c, container: container, path: path, from: make(map[string]value), parts: make(map[string]bool)}
	for i, source := range container.EnvFrom {
		e.resolveFrom(source, fmt.Sprintf("%s.envFrom[%d]", path, i))
	}
	var env []corev1.EnvVar
	for _, name := range sortedKeys(e.from) {
		env = append(env, e.variable(name, e.from[name])...)
	}
	for _, v := range container.Env {
		if v.ValueFrom == nil {
			env = append(env, v)
		} else {
			env = append(env, e.resolve(v, item(path, "env", v.Name)+".valueFrom")...)
		}
	}
	env = slices.Concat(e.serviceEnv(env), env)
	e.checkNames(env)
	e.warnAboutServiceLinks(env)
	container.Env, container.EnvFrom = env, nil
}

func (e *environment) resolveFrom(source corev1.EnvFromSource, path string) {
	envFromFields.apply(&source, path, e.report)
	if ref := source.ConfigMapRef; ref != nil {
		path += ".configMapRef"
		for key, text := range e.configMap(ref.Name, ref.Optional, path).Data {
			e.from[source.Prefix+key] = value{text, false, path}
		}
	}
	if ref := source.SecretRef; ref != nil {
		path += ".secretRef"
		for key, data := range e.secret(ref.Name, ref.Optional, path).Data {
			e.from[source.Prefix+key] = value{string(data), true, path}
		}
	}
}

// resolve resolves one entry of env that has a source.
func (e *environment) resolve(v corev1.EnvVar, path string) []corev1.EnvVar {
	envSourceFields.apply(v.ValueFrom, path, e.report)
	switch source := v.ValueFrom; {
	case source.FieldRef != nil:
		return []corev1.EnvVar{e.fieldEnv(v)}
	case source.ResourceFieldRef != nil:
		return []corev1.EnvVar{e.resourceEnv(v)}
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		path += ".configMapKeyRef"
		configMap := e.configMap(ref.Name, ref.Optional, path)
		text, ok := configMap.Data[ref.Key]
		if !ok {
			e.missingKey("ConfigMap", configMap.Name, ref.Key, ref.Optional, path)
			return nil
		}
		return e.variable(v.Name, value{text, false, path})
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		path += ".secretKeyRef"
		secret := e.secret(ref.Name, ref.Optional, path)
		data, ok := secret.Data[ref.Key]
		if !ok {
			e.missingKey("Secret", secret.Name, ref.Key, ref.Optional, path)
			return nil
		}
		return e.variable(v.Name, value{string(data), true, path})
	default:
		return []corev1.EnvVar{v}
	}
}

// variable makes the entry of env, or the entries, that give a resolved value to the process.
func (e *environment) variable(name string, v value) []corev1.EnvVar {
	if problem := unfit(v.text); problem != "" {
		e.refuse(v.path, "the value of "+name+" "+problem+", so that no container can start with it", "mount it as a file instead")
		return nil
	}
	if v.secret && v.text != "" {
		return e.secretEnv(name, v.text, v.path)
	}
	return []corev1.EnvVar{literal(name, v.text)}
}

// checkNames refuses names that a kubelet before 1.35 rejects in a static pod, though not in others: until then it
// validated static pods more strictly than the API server (k8s.io/kubernetes/pkg/kubelet/config/common.go,
// tryDecodeSinglePod).
func (e *environment) checkNames(env []corev1.EnvVar) {
	if v, err := version.ParseGeneric(e.opts.KubeletVersion); err != nil || v.AtLeast(version.MajorMinor(1, 35)) {
		return
	}
	for _, v := range env {
		if len(validation.IsEnvVarName(v.Name)) > 0 {
			e.refuse(item(e.path, "env", v.Name), "the kubelet "+e.opts.KubeletVersion+" accepts no variable of this name in a static pod", "upgrade the kubelet to 1.35 or later, or rename the variable")
		}
	}
}

// literal is a variable whose value the kubelet passes on as it is: it expands $(NAME) in a value that the manifest
// holds, and makes one dollar of two (k8s.io/kubernetes/third_party/forked/golang/expansion).
func literal(name, text string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, Value: strings.ReplaceAll(text, "$", "$$")}
}

// configMap returns an empty one when there is none, having said so if that is a reason to refuse.
func (c *conversion) configMap(name string, optional *bool, path string) *corev1.ConfigMap {
	if object := c.refs.ConfigMaps[name]; object != nil {
		return object
	}
	c.missingObject("ConfigMap", name, optional, path)
	return &corev1.ConfigMap{}
}

func (c *conversion) secret(name string, optional *bool, path string) *corev1.Secret {
	if object := c.refs.Secrets[name]; object != nil {
		return object
	}
	c.missingObject("Secret", name, optional, path)
	return &corev1.Secret{}
}

func (c *conversion) missingObject(kind, name string, optional *bool, path string) {
	if optional == nil || !*optional {
		c.refuse(path, fmt.Sprintf("the %s %s/%s does not exist, so that the pod itself can't start", kind, c.parent.Namespace, name), "create it, or make the reference optional")
	}
}

// missingKey reports a key that an object lacks. Of an object that is missing itself enough has been said.
func (c *conversion) missingKey(kind, name, key string, optional *bool, path string) {
	if name != "" && (optional == nil || !*optional) {
		c.refuse(path, fmt.Sprintf("the %s %s/%s has no key %s, so that the pod itself can't start", kind, c.parent.Namespace, name, key), "add the key, or make the reference optional")
	}
}
