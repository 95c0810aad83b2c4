package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
)

// What the kubelet makes of the variables is tested with the kubelet's code, in e2e/kubeletaccept. Here is what it can't
// tell: what is not in a manifest.

func FuzzSplit(f *testing.F) {
	f.Add("")
	f.Add("it's\r\n'")
	f.Add(strings.Repeat("é", maxPart))
	f.Add("'" + strings.Repeat("x", 2*maxPart+1) + "\r")
	f.Fuzz(func(t *testing.T, text string) {
		if unfit(text) != "" {
			t.Skip("no variable can hold it")
		}
		parts := split(text)
		if strings.Join(parts, "") != text {
			t.Error("something is lost")
		}
		for _, part := range parts {
			if part == "" || len(part) > maxPart || !utf8.ValidString(part) || !isSeparator(part) && strings.ContainsAny(part, "'\r") {
				t.Errorf("the parser can't read %.100q", part)
			}
		}
	})
}

// No value of a Secret is in the manifest, in a warning or in a refusal, unless somebody accepted that in writing.
func TestSecretValuesStayOut(t *testing.T) {
	const value = "hunter2"
	refs := References{Secrets: map[string]*corev1.Secret{"s": {Data: map[string][]byte{
		"plain": []byte(value), "quoted": []byte("'" + value + "'"), "long": []byte(strings.Repeat(value, maxPart)), "zero": []byte(value + "\x00"),
	}}}}
	with := func(inline bool, keys ...string) *corev1.Pod {
		return newPod(func(pod *corev1.Pod) {
			pod.Annotations = make(map[string]string)
			if inline {
				pod.Annotations[AnnotationSecretEnv] = secretEnvInline
			}
			for _, key := range keys {
				pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: strings.ToUpper(key), ValueFrom: &corev1.EnvVarSource{
					SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: key},
				}})
			}
		})
	}
	old := testOptions
	old.KubeletVersion = "v1.34.4+k3s1"
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		opts    Options
		refused string
		exposed bool
	}{
		"in a file":                        {with(false, "plain", "quoted", "long"), testOptions, "", false},
		"accepted, but not necessary":      {with(true, "plain"), testOptions, "", false},
		"old kubelet":                      {with(false, "plain", "quoted"), old, "can't read variables from a file", false},
		"old kubelet, accepted":            {with(true, "plain"), old, "", true},
		"what no variable can hold":        {with(false, "zero"), testOptions, "holds a zero byte", false},
		"what no variable can hold, in it": {with(true, "zero"), old, "holds a zero byte", false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Convert(test.pod, refs, test.opts)
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Fatalf("error %v", err)
			}
			said := fmt.Sprint(string(result.Manifest), result.Warnings, err)
			if got := strings.Contains(said, value); got != test.exposed {
				t.Errorf("exposed: %v\n%.2000s", got, said)
			}
			if warned := strings.Contains(fmt.Sprint(result.Warnings), "everyone who may read pods"); warned != test.exposed {
				t.Errorf("warnings %v", result.Warnings)
			}
		})
	}
}

// An equal value is in the file once, and a part has one variable in a container.
func TestEqualValuesAreOnce(t *testing.T) {
	pod := newPod(func(pod *corev1.Pod) {
		from := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}}}}
		pod.Spec.Containers = []corev1.Container{{Name: "a", EnvFrom: from}, {Name: "b", EnvFrom: from}}
	})
	refs := References{Secrets: map[string]*corev1.Secret{"s": {Data: map[string][]byte{"A": []byte("x'x"), "B": []byte("x"), "C": []byte("x'x")}}}}
	result, err := Convert(pod, refs, testOptions)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(result.Assets[0].Files[envFileName]); got != "K0='x'\n" {
		t.Errorf("the file is %q", got)
	}
	for _, container := range result.Pod.Spec.Containers {
		var names []string
		for _, v := range container.Env {
			names = append(names, v.Name)
		}
		if want := []string{serviceHost, servicePort, "CKPT_K0", "A", "B", "C"}; !slices.Equal(names, want) {
			t.Errorf("container %s has %v", container.Name, names)
		}
	}
}

func TestReferencesIn(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     nil,
		"$":                    nil,
		"a$(B)c$(D)":           {"B", "D"},
		"$$(A)$(B)":            {"B"},
		"$$$(A)":               {"A"},
		"$(A":                  nil,
		"$((A)":                {"(A"},
		"${A}$A":               nil,
		"$(A)$":                {"A"},
		"$()":                  {""},
		"$(A_SERVICE_HOST)$($": {"A_SERVICE_HOST"},
	} {
		if got := referencesIn(text); !slices.Equal(got, want) {
			t.Errorf("%q refers to %q, want %q", text, got, want)
		}
	}
}
