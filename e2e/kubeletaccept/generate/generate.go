// Package generate makes random pods that an API server would accept.
package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // registers the defaults
	v1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
)

// NodeName is the node that every generated pod is bound to.
const NodeName = "node1"

// Case is a pod as an API server returns it, and what it refers to.
type Case struct {
	Seed       uint64
	Pod        *corev1.Pod
	References manifest.References
	Spoiled    string // what the pod must be refused for; empty: it must be accepted
}

// New makes the pod of a seed: always the same one.
func New(seed uint64) (Case, error) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed)), hostPorts: make(map[string]bool)}
	g.refs = manifest.References{
		ConfigMaps: make(map[string]*corev1.ConfigMap),
		Secrets:    make(map[string]*corev1.Secret),
		PVCs:       make(map[string]*corev1.PersistentVolumeClaim),
		PVs:        make(map[string]*corev1.PersistentVolume),
	}
	g.pod = &corev1.Pod{}
	g.metadata()
	g.objects()
	g.spec()
	var spoiled string
	if g.chance(0.12) {
		spoiled = g.spoil()
	}
	g.serviceAccount()
	legacyscheme.Scheme.Default(g.pod)
	if err := admit(g.pod); err != nil {
		return Case{}, fmt.Errorf("seed %d: the generator made a pod that no API server would accept: %w", seed, err)
	}
	g.afterCreation()
	return Case{Seed: seed, Pod: g.pod, References: g.refs, Spoiled: spoiled}, nil
}

// admit is what the API server does with a new pod: it drops the fields of features that are off, and validates
// (k8s.io/kubernetes/pkg/registry/core/pod.podStrategy).
func admit(pod *corev1.Pod) error {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true}) // as --allow-privileged does
	var internal core.Pod
	if err := v1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return err
	}
	podutil.DropDisabledPodFields(&internal, nil)
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	if errs := validation.ValidatePodCreate(&internal, options); len(errs) > 0 {
		return errs.ToAggregate()
	}
	admitted := corev1.Pod{}
	if err := v1.Convert_core_Pod_To_v1_Pod(&internal, &admitted, nil); err != nil {
		return err
	}
	*pod = admitted
	return nil
}

type generator struct {
	*rand.Rand
	pod       *corev1.Pod
	refs      manifest.References
	hostPorts map[string]bool // taken in this pod
	names     int
}

func (g *generator) chance(p float64) bool { return g.Float64() < p }

// pick chooses one.
func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

// maybe is nil, or a pointer to one of the values.
func maybe[T any](g *generator, p float64, from ...T) *T {
	if !g.chance(p) {
		return nil
	}
	return new(pick(g, from...))
}

// several makes up to most elements.
func several[T any](g *generator, most int, make func() T) []T {
	var made []T
	for range g.IntN(most + 1) {
		made = append(made, make())
	}
	return made
}

// name is a DNS label that no other in the pod is.
func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s-%d", prefix, g.names)
}

// text is a string of these parts.
func (g *generator) text(most int, parts ...string) string {
	var text strings.Builder
	for range g.IntN(most + 1) {
		text.WriteString(pick(g, parts...))
	}
	return text.String()
}
