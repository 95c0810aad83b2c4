package manifest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withoutGold are refusals that no file of testdata can lead to: inputs of megabytes, which TestWhatIsTooLargeForTheKubelet
// makes, and a pod that package input refuses before.
var withoutGold = []string{" bytes, and the kubelet reads ", "with a checkpoint's own they would have ", "a name and a namespace are needed"}

// TestEachRefusalIsGolden: a reason to refuse a pod has a golden case and says what a person can do.
func TestEachRefusalIsGolden(t *testing.T) {
	told := toldRefusals(t)
	for problem, remedy := range refusalsOfTheCode(t) {
		if !strings.Contains(told, problem) && !slices.Contains(withoutGold, problem) {
			t.Errorf("no golden case is refused because %q", problem)
		}
		if remedy == `""` {
			t.Errorf("%q: no remedy", problem)
		}
	}
	for _, test := range allDecisions {
		for field, decided := range test.decisions {
			if decided.action == refuse && !strings.Contains(told, "."+field+": "+decided.why+"; ") {
				t.Errorf("no golden case is refused because of %s.%s", reflect.TypeOf(test.of), field)
			}
		}
	}
}

func TestPodWithoutNameOrNamespaceIsRefused(t *testing.T) {
	for _, strip := range []func(*corev1.Pod){
		func(pod *corev1.Pod) { pod.Name = "" },
		func(pod *corev1.Pod) { pod.Namespace = "" },
	} {
		_, err := Convert(newPod(strip), References{}, testOptions)
		if want := "metadata: a name and a namespace are needed; set metadata.name and metadata.namespace"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func toldRefusals(t *testing.T) string {
	var told strings.Builder
	cases, err := filepath.Glob("testdata/*/refused.txt")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, path := range cases {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		told.Write(data)
	}
	return told.String()
}

// refusalsOfTheCode are the calls of conversion.refuse that name their problem: its longest constant part, and the remedy as
// it is written.
func refusalsOfTheCode(t *testing.T) map[string]string {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	refusals := make(map[string]string)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 3 {
				return true
			}
			if method, ok := call.Fun.(*ast.SelectorExpr); !ok || method.Sel.Name != "refuse" {
				return true
			}
			if problem := longestConstant(call.Args[1]); problem != "" {
				remedy, _ := call.Args[2].(*ast.BasicLit)
				refusals[problem] = ""
				if remedy != nil {
					refusals[problem] = remedy.Value
				}
			}
			return true
		})
	}
	if len(refusals) < 20 {
		t.Fatalf("only %d found: %q", len(refusals), slices.Collect(maps.Keys(refusals)))
	}
	return refusals
}

var verb = regexp.MustCompile("%[a-z]")

func longestConstant(problem ast.Expr) (longest string) {
	ast.Inspect(problem, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			for _, part := range verb.Split(text, -1) {
				if len(part) > len(longest) {
					longest = part
				}
			}
		}
		return true
	})
	return longest
}

// TestEveryVolumeIsConvertedAsDecided sets each kind of volume, and each kind of PersistentVolume behind a claim, in turn.
func TestEveryVolumeIsConvertedAsDecided(t *testing.T) {
	const volume = "v"
	convert := func(source corev1.VolumeSource, refs References) (corev1.VolumeSource, error) {
		result, err := Convert(newPod(func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{{Name: volume, VolumeSource: source}}
			pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: volume, MountPath: "/v"}}
		}), refs, testOptions)
		if err != nil {
			return corev1.VolumeSource{}, err
		}
		return result.Pod.Spec.Volumes[0].VolumeSource, nil
	}
	each(t, volumeFields, func(field string, decided action, source corev1.VolumeSource) {
		if source.Image != nil {
			source.Image.PullPolicy = corev1.PullAlways
		}
		if source.PersistentVolumeClaim != nil {
			return // see below
		}
		got, err := convert(source, References{})
		if same := reflect.DeepEqual(got, source); (err != nil) != (decided == refuse) || same != (decided == keep) {
			t.Errorf("%s: %+v, %v", field, got, err)
		}
	})
	each(t, persistentVolumeFields, func(field string, decided action, source corev1.PersistentVolumeSource) {
		got, err := convert(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}, References{
			PVCs: map[string]*corev1.PersistentVolumeClaim{"c": {Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}},
			PVs:  map[string]*corev1.PersistentVolume{"pv": {ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}},
		})
		if (err != nil) != (decided == refuse) || got.PersistentVolumeClaim != nil {
			t.Errorf("%s: %+v, %v", field, got, err)
		}
	})
}

// each calls do with a T of which only one field is set, for all fields that are decided about.
func each[T any](t *testing.T, all decisions, do func(field string, decided action, source T)) {
	typ := reflect.TypeFor[T]()
	for i := range typ.NumField() {
		field, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		decided, ok := all[field]
		if !ok {
			t.Errorf("%s.%s: no decision", typ, field)
		}
		var source T
		reflect.ValueOf(&source).Elem().Field(i).Set(reflect.New(typ.Field(i).Type.Elem()))
		do(field, decided.action, source)
	}
}
