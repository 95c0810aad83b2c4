//go:build linux

package selfhosted

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"text/template"

	"github.com/pod-checkpointer/pod-checkpointer/e2e/lab"
)

//go:embed *.yaml
var manifests embed.FS

const secretsDir = "/etc/kubernetes/secrets"

// Shape is what tests change of the API server's DaemonSet.
type Shape struct {
	// PortSharing lets two API servers listen at once, and says so to the checkpointer.
	PortSharing bool
	// Args come after the API server's other arguments.
	Args []string
}

// ApplyAPIServer applies the DaemonSet: the second time it is a roll-out.
func (p *ControlPlane) ApplyAPIServer(ctx context.Context, shape Shape) error {
	p.Shape = shape
	manifest, err := p.render("kube-apiserver.yaml")
	if err != nil {
		return err
	}
	return p.Apply(ctx, manifest)
}

func (p *ControlPlane) render(file string) ([]byte, error) {
	text, err := template.New(file).Funcs(template.FuncMap{"json": toJSON}).ParseFS(manifests, file)
	if err != nil {
		return nil, err
	}
	args, annotations := p.APIServerArgs(secretsDir), map[string]string{"checkpointer.alpha.coreos.com/checkpoint": "true"}
	if p.Shape.PortSharing {
		args = append(args, "--permit-port-sharing=true")
		annotations["checkpointer.alpha.coreos.com/handover"] = "ready"
	}
	var out bytes.Buffer
	err = text.Execute(&out, map[string]any{
		"APIServerArgs":         append(args, p.Shape.Args...),
		"Annotations":           annotations,
		"ControllerManagerArgs": append(lab.ControllerManagerArgs(secretsDir), "--leader-elect=true"),
	})
	return out.Bytes(), err
}

func toJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}
