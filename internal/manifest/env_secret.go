package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// unfit says why no process can have a value in its environment: it is NUL-terminated there, and UTF-8 on its way
// through the container runtime's API.
func unfit(text string) string {
	switch {
	case strings.Contains(text, "\x00"):
		return "holds a zero byte"
	case !utf8.ValidString(text):
		return "is not UTF-8"
	default:
		return ""
	}
}

// secretEnv gives a container a value from a Secret without writing it into the manifest, where the mirror pod would
// show it to everyone who may read pods. It is written to a file, and the kubelet reads it from there (fileKeyRef).
func (e *environment) secretEnv(name, text, path string) []corev1.EnvVar {
	problem, remedy := e.noEnvFile()
	if problem == "" {
		return e.compose(name, text)
	}
	if e.parent.Annotations[AnnotationSecretEnv] != secretEnvInline {
		e.refuse(path, problem, remedy+", mount the Secret as a volume, or accept that everyone who may read pods in this namespace sees the value: annotation "+AnnotationSecretEnv+": "+secretEnvInline)
		return nil
	}
	e.warn(path, "everyone who may read pods in this namespace sees the value while the checkpoint is active", "mount the Secret as a volume, or "+remedy)
	return []corev1.EnvVar{literal(name, text)}
}

// noEnvFile says why variables can't be read from a file on this node.
func (c *conversion) noEnvFile() (problem, remedy string) {
	const upgrade = "upgrade the kubelet to 1.35 or later"
	v, err := version.ParseGeneric(c.opts.KubeletVersion)
	switch {
	case err != nil:
		return "the kubelet's version is not known, and only from 1.35 on it reads variables from a file", upgrade
	case v.LessThan(version.MajorMinor(1, 35)): // gate EnvFiles, on by default since 1.35
		return "the kubelet " + c.opts.KubeletVersion + " can't read variables from a file", upgrade
	case c.opts.AgentImage == "":
		return "the checkpointer's own image, which hands the value over, is not known", "name it (render --agent-image)"
	default:
		return "", ""
	}
}

// compose makes the variable of parts that the kubelet's parser can read, and of literals for what it can't
// (k8s.io/kubernetes/pkg/kubelet/util/env.ParseEnv): a quote ends a value, and a carriage return before a line feed is
// dropped. A part that is not the whole value has a variable of its own, to which the value refers. The kubelet expands
// a reference once, so that a part that looks like one arrives as it is.
func (e *environment) compose(name, text string) []corev1.EnvVar {
	parts := split(text)
	if len(parts) == 1 && !isSeparator(parts[0]) {
		return []corev1.EnvVar{e.fromFile(name, e.envKey(parts[0]))}
	}
	var env []corev1.EnvVar
	var value strings.Builder
	for _, part := range parts {
		if isSeparator(part) {
			value.WriteString(part)
			continue
		}
		key := e.envKey(part)
		name := e.partPrefix() + key
		if !e.parts[key] {
			e.parts[key] = true
			env = append(env, e.fromFile(name, key))
		}
		value.WriteString("$(" + name + ")")
	}
	return append(env, corev1.EnvVar{Name: name, Value: value.String()})
}

// maxPart keeps a line of the file below the 64 KiB that the parser's bufio.Scanner takes.
const maxPart = 32 << 10

func isSeparator(part string) bool { return part == "'" || part == "\r" }

// split cuts a value at its separators, which are parts of their own, and into pieces of at most maxPart bytes.
func split(text string) []string {
	var parts []string
	for text != "" {
		end := strings.IndexAny(text, "'\r")
		if end < 0 {
			end = len(text)
		}
		if end > maxPart {
			for end = maxPart; !utf8.RuneStart(text[end]); end-- {
			}
		}
		end = max(end, 1)
		parts = append(parts, text[:end])
		text = text[end:]
	}
	return parts
}

// partPrefix begins the names of the variables that hold a part of a value, so that nothing in the container sets or
// refers to another of such a name.
func (e *environment) partPrefix() string {
	if e.prefix != "" {
		return e.prefix
	}
	names := sortedKeys(e.from)
	for _, v := range e.container.Env {
		names = append(append(names, v.Name), referencesIn(v.Value)...)
	}
	for _, text := range slices.Concat(e.container.Command, e.container.Args) {
		names = append(names, referencesIn(text)...)
	}
	e.prefix = "CKPT_"
	for slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, e.prefix) }) {
		e.prefix = "_" + e.prefix
	}
	return e.prefix
}

// envKey is the key in the file under which a part of a value stands. Equal parts have one.
func (c *conversion) envKey(part string) string {
	key, known := c.envKeys[part]
	if !known {
		if c.envKeys == nil {
			c.envKeys = make(map[string]string)
		}
		key = fmt.Sprintf("K%d", len(c.envKeys))
		c.envKeys[part] = key
		fmt.Fprintf(&c.envFile, "%s='%s'\n", key, part)
	}
	return key
}
