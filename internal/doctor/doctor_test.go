package doctor

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// healthy is a node with the agent and one workload on which nothing is wrong.
func healthy() *Facts {
	yes := true
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Annotations: map[string]string{}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/" + name + ":1"}}},
		}
	}
	return &Facts{
		Now: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Held: true,
		Report: &status.Report{
			Agent: &status.Agent{Node: "node1"},
			Lineages: []status.Lineage{
				{Lineage: "self", Namespace: "n", Pod: "agent", Self: true, Phase: "active", Generation: "1", Handover: "created", Current: &yes},
				{Lineage: "web", Namespace: "n", Pod: "web", UID: "uid-web", Phase: "stored", Generation: "1", Handover: "ready", Current: &yes},
			},
		},
		Checkpoints: []Checkpoint{
			{Checkpoint: checkpoint.Checkpoint{Namespace: "n", Name: "agent", Lineage: "self", Stored: checkpoint.Intact, Active: checkpoint.Intact}, Pod: pod("agent")},
			{Checkpoint: checkpoint.Checkpoint{Namespace: "n", Name: "web", Lineage: "web", Stored: checkpoint.Intact}, Pod: pod("web")},
		},
		Runtime: kubelet.Inspection{
			Sandboxes: []checkpoint.Sandbox{{Namespace: "n", CheckpointOf: "agent", FromFile: true, Ready: true}},
			Plugins:   []string{"ptp", "portmap"},
		},
		RecordedUID: "u", NodeUID: "u",
		Spaces: []Space{{Path: "/x", Bytes: 1 << 30, Files: 1 << 20, BytesPart: 0.5, FilePart: 0.5}},
		Cert:   time.Date(2027, 12, 1, 0, 0, 0, 0, time.UTC),
	}
}

func runs(image string, command ...string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Image: image, Command: command}}}}
}

// ills are what is done to a healthy node so that exactly one kind of finding is there.
var ills = map[string]func(*Facts){
	"directory-unreadable":  func(f *Facts) { f.DiskErr = errors.New("gone") },
	"runtime-silent":        func(f *Facts) { f.RuntimeErr, f.Runtime = errors.New("gone"), kubelet.Inspection{} },
	"disk-nearly-full":      func(f *Facts) { f.Spaces[0].Bytes = 1 << 20 },
	"certificate-ending":    func(f *Facts) { f.Cert = f.Now.Add(24 * time.Hour) },
	"kubeconfig-unusable":   func(f *Facts) { f.Cert, f.CertErr = time.Time{}, errors.New("gone") },
	"no-agent":              func(f *Facts) { f.Held = false },
	"lock-foreign":          func(f *Facts) { f.Report = nil },
	"no-self-checkpoint":    func(f *Facts) { f.Checkpoints[0].Active = checkpoint.Missing },
	"static-copy-down":      func(f *Facts) { f.Runtime.Sandboxes[0].FromFile = false },
	"refused":               func(f *Facts) { f.refuse("uid-odd") },
	"refused-earlier-kept":  func(f *Facts) { f.refuse("uid-web") },
	"no-checkpoint":         func(f *Facts) { f.row().Phase, f.row().Generation, f.row().Current = "absent", "", nil },
	"stored-lost":           func(f *Facts) { f.Checkpoints = f.Checkpoints[:1] },
	"assets-incomplete":     func(f *Facts) { f.Checkpoints[1].Missing = []string{"keys"} },
	"image-missing":         func(f *Facts) { f.Runtime.Missing = []string{"example.com/web:1"} },
	"manifest-twice":        func(f *Facts) { f.Checkpoints[1].Twins = []string{"web.yaml"} },
	"manifest-ignored":      func(f *Facts) { f.Checkpoints[1].Active = checkpoint.Intact },
	"checkpoint-down":       func(f *Facts) { f.row().Reason = "checkpoint-stuck" },
	"outdated":              func(f *Facts) { no := false; f.row().Current = &no },
	"stuck":                 func(f *Facts) { f.row().Stuck = "uid-web" },
	"image-needs-secret":    func(f *Facts) { f.row().Warnings = []string{"spec.imagePullSecrets: may not start"} },
	"host-port-gap":         func(f *Facts) { f.row().Handover = "created" },
	"oom-first":             func(f *Facts) { f.row().QOSClass = "Guaranteed" },
	"api-server-alone":      func(f *Facts) { f.Checkpoints[1].Pod = runs("registry.k8s.io/kube-apiserver:v1.37.2") },
	"no-network-agent":      func(f *Facts) { f.Runtime.Plugins = []string{"cilium-cni"} },
	"network-agent-unknown": func(f *Facts) { f.Runtime.Plugins = nil },
	"node-identity":         func(f *Facts) { f.NodeUID = "other" },
	"nothing-asked-for":     func(f *Facts) { f.Report.Lineages, f.Checkpoints = f.Report.Lineages[:1], f.Checkpoints[:1] },
}

func (f *Facts) row() *status.Lineage { return &f.Report.Lineages[1] }

func (f *Facts) refuse(uid string) {
	f.Report.Refused = []status.Refused{{Namespace: "n", Pod: "p", UID: uid, Reasons: []string{"no"}}}
}

func names(findings []Finding) (names []string) {
	for _, f := range findings {
		names = append(names, f.Name)
	}
	return names
}

func TestAHealthyNodeHasNoFindings(t *testing.T) {
	if found := Examine(healthy()); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
}

func TestEachIllIsFoundAndNoOther(t *testing.T) {
	for _, kind := range Kinds() {
		spoil := ills[kind.Name]
		if spoil == nil {
			t.Errorf("no test provokes %s", kind.Name)
			continue
		}
		f := healthy()
		spoil(f)
		found := Examine(f)
		if got := names(found); !slices.Equal(got, []string{kind.Name}) {
			t.Errorf("%s: found %q", kind.Name, got)
			continue
		}
		if found[0].What == "" || Survives(found) != (kind.Severity == Warning) {
			t.Errorf("%s: %+v", kind.Name, found[0])
		}
	}
}

func TestWhatCuresIsNoFinding(t *testing.T) {
	for name, cure := range map[string]func(*Facts){
		"api-server-alone": func(f *Facts) {
			f.Others = []*corev1.Pod{runs("x", "/usr/bin/kube-scheduler"), runs("kube-controller-manager")}
		},
		"no-network-agent": func(f *Facts) {
			agent := runs("cilium")
			agent.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d/"}}}}
			f.Checkpoints = append(f.Checkpoints, Checkpoint{Pod: agent})
		},
		"oom-first": func(f *Facts) { f.Checkpoints[1].Pod.Annotations[manifest.AnnotationKeepRequests] = "true" },
		"manifest-ignored": func(f *Facts) {
			f.Runtime.Sandboxes = append(f.Runtime.Sandboxes, checkpoint.Sandbox{Namespace: "n", CheckpointOf: "web", FromFile: true})
		},
		"node-identity": func(f *Facts) { f.NodeUID = "" }, // unknown is not different
	} {
		f := healthy()
		ills[name](f)
		cure(f)
		if found := Examine(f); len(found) > 0 {
			t.Errorf("%s: still found %+v", name, found)
		}
	}
}

// TestTheDocumentedFindingsAreTheFindings holds docs/commands/doctor.md to Kinds.
func TestTheDocumentedFindingsAreTheFindings(t *testing.T) {
	doc, err := os.ReadFile("../../docs/commands/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, k := range Kinds() {
		table.WriteString("| `" + k.Name + "` | " + string(k.Severity) + " | " + k.Means + " | " + k.Remedy + " |\n")
	}
	if _, documented, _ := strings.Cut(string(doc), "| name | severity | what would happen | what to do |\n|---|---|---|---|\n"); documented != table.String() {
		t.Errorf("the table of docs/commands/doctor.md must end the page, and be:\n%s", &table)
	}
}

func TestWhatATerminalWouldObeyIsShown(t *testing.T) {
	var out strings.Builder
	if err := Print(&out, []Finding{{Name: "x", Severity: Error, What: "a\x1b[31mb"}}, 1, false); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %q", err, out.String())
	}
}
