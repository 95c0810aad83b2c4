package generate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	objectNames = []string{"obj-a", "obj-b", "obj-c"}
	objectKeys  = []string{"A", "TOKEN", "CKPT_K0", "key.with-dots", "1digit", "KUBERNETES_SERVICE_HOST"}
	envNames    = []string{"A", "B", "TOKEN", "CKPT_K0", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "FOO_SERVICE_HOST"}
)

// nasty makes values that a parser or an expansion could get wrong.
func (g *generator) nasty() string {
	switch {
	case g.chance(0.02):
		return strings.Repeat(pick(g, "x", "é", "'", "\r\n", "12345678"), 20_000+g.IntN(20_000))
	case g.chance(0.1):
		return ""
	default:
		return g.text(8, "a", " ", "\t", "'", `"`, "\\", "\r", "\n", "\r\n", "$", "$$", "$(A)", "$(TOKEN)", "$(CKPT_K0)", "$(KUBERNETES_SERVICE_HOST)", "${A}", "#", "=", "K0='x'\n", "é", "世", "\u2028", "-----BEGIN KEY-----\n")
	}
}

// objects makes the ConfigMaps and Secrets that variables refer to. Some are missing.
func (g *generator) objects() {
	for _, name := range objectNames {
		configMap := &corev1.ConfigMap{Data: make(map[string]string)}
		secret := &corev1.Secret{Data: make(map[string][]byte)}
		configMap.Name, secret.Name = name, name
		for _, key := range objectKeys {
			if g.chance(0.6) {
				configMap.Data[key] = g.nasty()
			}
			if g.chance(0.6) {
				secret.Data[key] = []byte(g.nasty())
			}
		}
		if g.chance(0.8) {
			g.refs.ConfigMaps[name] = configMap
		}
		if g.chance(0.8) {
			g.refs.Secrets[name] = secret
		}
	}
}

// env gives a container variables. A reference to what is missing is optional.
func (g *generator) env(c *corev1.Container) {
	for range g.IntN(3) {
		name := pick(g, objectNames...)
		from := corev1.EnvFromSource{Prefix: pick(g, "", "", "P_")}
		if object := (corev1.LocalObjectReference{Name: name}); g.chance(0.5) {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: object, Optional: g.optional(g.refs.ConfigMaps[name] != nil)}
		} else {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: object, Optional: g.optional(g.refs.Secrets[name] != nil)}
		}
		c.EnvFrom = append(c.EnvFrom, from)
	}
	for range g.IntN(6) {
		v := corev1.EnvVar{Name: pick(g, envNames...)}
		switch g.IntN(5) {
		case 0:
			v.Value = g.nasty()
		case 1:
			v.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: pick(g,
				"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['app']", "metadata.annotations['note']",
				"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")}}
		case 2:
			ref := &corev1.ResourceFieldSelector{Resource: pick(g, "limits.cpu", "requests.cpu", "requests.memory", "limits.memory", "requests.ephemeral-storage")}
			if strings.HasSuffix(ref.Resource, "cpu") {
				ref.Divisor = resource.MustParse(pick(g, "0", "1", "1m"))
			} else {
				ref.Divisor = resource.MustParse(pick(g, "0", "1", "1Mi", "1Ki"))
			}
			v.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: ref}
		case 3:
			v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: g.configMapKey()}
		default:
			v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: g.secretKey()}
		}
		c.Env = append(c.Env, v)
	}
}

func (g *generator) configMapKey() *corev1.ConfigMapKeySelector {
	name, key := pick(g, objectNames...), pick(g, objectKeys...)
	object := g.refs.ConfigMaps[name]
	exists := object != nil
	if exists {
		_, exists = object.Data[key]
	}
	return &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: g.optional(exists)}
}

func (g *generator) secretKey() *corev1.SecretKeySelector {
	name, key := pick(g, objectNames...), pick(g, objectKeys...)
	object := g.refs.Secrets[name]
	exists := object != nil
	if exists {
		_, exists = object.Data[key]
	}
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key, Optional: g.optional(exists)}
}

func (g *generator) optional(exists bool) *bool {
	if !exists {
		return new(true)
	}
	return maybe(g, 0.3, true, false)
}

func (g *generator) claim() string { return fmt.Sprintf("claim-%d", len(g.refs.PVCs)) }
