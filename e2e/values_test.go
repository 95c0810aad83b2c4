//go:build linux

package e2e

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/site"
	"github.com/pod-checkpointer/pod-checkpointer/e2e/witness"
)

//go:embed testdata/values.yaml
var valueWorkloads []byte

// nasty are values that a file of variables, a shell or Kubernetes' own expansion could spoil.
var nasty = map[string]string{
	"quote":     "it's a secret",
	"quotes":    "'''",
	"double":    `say "hello"`,
	"dollar":    "$(V_quote) $$(X) $HOME ${HOME} $$$",
	"backslash": `C:\temp\new\`,
	"lines":     "first-line-of-many\nsecond\n\nfourth\n",
	"crlf":      "first\r\nsecond\r",
	"spaces":    "  both sides  ",
	"tab":       "\ta tab\t",
	"hash":      "# not a comment",
	"equals":    "A=B='C'",
	"export":    "export X=1",
	"unicode":   "grüße, 世界",
	"empty":     "",
	"long":      strings.Repeat("long and 'quoted' ", 4000),
	"pem":       "-----BEGIN X-----\nAAAA\n-----END X-----\n",
}

// TestValuesOfTheParent: environment from a Secret, and data of a local PersistentVolume, are in the checkpoint what they
// are in the parent, and no secret value is in any manifest or mirror pod. (Named probe ports on the host's network are
// in TestRecovery's gateway.)
func TestValuesOfTheParent(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := newSite(ctx, t, lab.NodeOptions{})
	s.step("there is data", writeData())
	s.step("the Secret is made", s.makeSecret(ctx))
	s.step("workloads are applied", s.Apply(ctx, valueWorkloads))
	names := map[string]string{"vault": "", "store": ""}
	for name := range names {
		s.step(name+" is ready", s.WaitDaemonSet(ctx, site.Namespace, name))
		pods, err := s.PodsOf(ctx, site.Namespace, "app="+name)
		s.step(name+" has a pod", err)
		names[name] = pods[0].Name
		s.step(name+" has a stored checkpoint", site.Soon(ctx, "the checkpoint of "+name, func(context.Context) error {
			return site.Exists(site.Stored(names[name]))
		}))
	}
	vault, store := s.ask(ctx, names["vault"]), s.ask(ctx, names["store"], "/data", "/sub")
	if want := "[it's a secret] [it's a secret] $(V_quote)"; vault.Env["COMPOSED"] != want {
		t.Errorf("COMPOSED is %q in the parent, want %q", vault.Env["COMPOSED"], want)
	}
	for key, value := range nasty {
		if got := vault.Env["V_"+key]; got != value {
			t.Errorf("V_%s is %q in the parent, want %q", key, got, value)
		}
	}

	s.step("API server is stopped", s.APIServer.Stop(ctx))
	s.step("power is cut", s.PowerCut(ctx))
	s.step("power is on", s.PowerOn(ctx))
	after := s.ask(ctx, site.Static(names["vault"]))
	if diff := cmp.Diff(applicationEnv(vault), applicationEnv(after)); diff != "" {
		t.Errorf("the environment differs (-parent +checkpoint):\n%s", diff)
	}
	if diff := cmp.Diff(store.Dirs, s.ask(ctx, site.Static(names["store"]), "/data", "/sub").Dirs); diff != "" {
		t.Errorf("the data differs (-parent +checkpoint):\n%s", diff)
	}
	for _, path := range []string{site.Stored(names["vault"]), site.Active(names["vault"])} {
		manifest, err := os.ReadFile(path)
		s.step("the manifest is read", err)
		noSecret(t, path, string(manifest))
	}
	s.step("API server is back", s.APIServer.Start(ctx))
	var mirror *corev1.Pod
	s.step("the mirror pod of vault's checkpoint is there", lab.Wait(ctx, "the mirror pod", func(ctx context.Context) (err error) {
		mirror, err = s.Client().CoreV1().Pods(site.Namespace).Get(ctx, site.Static(names["vault"]), metav1.GetOptions{})
		return err
	}, s.Kubelet))
	text, err := json.Marshal(mirror)
	s.step("it is read", err)
	noSecret(t, "the mirror pod", string(text))
	for _, name := range names {
		s.step(name+" is back", lab.Wait(ctx, "the hand-over", func(context.Context) error { return site.Absent(site.Active(name)) }, s.Kubelet))
	}
	noSecret(t, "the checkpointer's log", s.log(time.Time{}).String())
}

func writeData() error {
	if err := os.MkdirAll("/var/lib/data/sub", 0o750); err != nil {
		return err
	}
	return os.WriteFile("/var/lib/data/sub/file", []byte("data"), 0o640)
}

func (s *testSite) makeSecret(ctx context.Context) error {
	_, err := s.Client().CoreV1().Secrets(site.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "values"}, StringData: nasty,
	}, metav1.CreateOptions{})
	return err
}

// ask waits for the witness of a pod on the pod network.
func (s *testSite) ask(ctx context.Context, pod string, dirs ...string) (testimony witness.Testimony) {
	s.t.Helper()
	s.step(pod+" answers", site.Soon(ctx, pod, func(ctx context.Context) error {
		ip, err := s.PodIP(ctx, site.Namespace, pod)
		if err != nil {
			return err
		}
		testimony, err = lab.Testimony(ctx, ip+":8080", dirs...)
		return err
	}, s.Kubelet))
	return testimony
}

// applicationEnv is the environment without what the kubelet adds for services, which static pods don't get, and
// without the parts that a checkpoint composes values from.
func applicationEnv(t witness.Testimony) map[string]string {
	env := maps.Clone(t.Env)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return strings.HasPrefix(name, "KUBERNETES_") || strings.HasPrefix(name, "CKPT_")
	})
	return env
}

// noSecret looks for what only the Secret's values hold.
func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{"a secret", "say ", "not a comment", "first-line-of-many", "世界", "BEGIN X", "long and ", "both sides", "a tab", "export X"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds the secret value %q", where, secret)
		}
	}
}
