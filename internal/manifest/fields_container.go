package manifest

// containerFields decides about k8s.io/api/core/v1.Container, for init containers, sidecars and regular ones.
var containerFields = decisions{
	"name":                     {action: keep},
	"image":                    {action: keep},
	"command":                  {action: keep},
	"args":                     {action: keep},
	"workingDir":               {action: keep},
	"ports":                    {action: rewrite, why: "removed on the host's network, where the kubelet would reserve them against the returning parent; elsewhere host ports are removed unless keep-host-ports is set"},
	"envFrom":                  {action: rewrite, why: "resolved into env"},
	"env":                      {action: rewrite, why: "see the table of variables"},
	"resources":                {action: rewrite, why: "limits stay; requests become zeros, because the kubelet would count them beside the parent's; keep-requests keeps them"},
	"resizePolicy":             {action: strip, why: "a static pod is not resized"},
	"restartPolicy":            {action: keep},
	"restartPolicyRules":       {action: keep},
	"volumeMounts":             {action: rewrite, why: "read-only where the volume was rewritten: the kubelet mounts those read-only too"},
	"volumeDevices":            {action: refuse, why: "the block device is set up through a PersistentVolumeClaim, which needs the API server", remedy: "use a hostPath of type BlockDevice"},
	"livenessProbe":            {action: rewrite, why: "named ports become numbers where ports are removed"},
	"readinessProbe":           {action: rewrite, why: "named ports become numbers where ports are removed"},
	"startupProbe":             {action: rewrite, why: "named ports become numbers where ports are removed"},
	"lifecycle":                {action: rewrite, why: "named ports become numbers where ports are removed"},
	"terminationMessagePath":   {action: keep},
	"terminationMessagePolicy": {action: keep},
	"imagePullPolicy":          {action: rewrite, why: "Always becomes IfNotPresent: the registry may be out of reach too"},
	"securityContext":          {action: keep},
	"stdin":                    {action: keep},
	"stdinOnce":                {action: keep},
	"tty":                      {action: keep},
}

// volumeMountFields decides about k8s.io/api/core/v1.VolumeMount.
var volumeMountFields = decisions{
	"name":              {action: keep},
	"readOnly":          {action: rewrite, why: "set where the volume was rewritten"},
	"recursiveReadOnly": {action: keep},
	"mountPath":         {action: keep},
	"subPath":           {action: keep},
	"mountPropagation":  {action: keep},
	"subPathExpr":       {action: keep},
	"bindMountOptions":  {action: keep},
}

// envFromFields decides about k8s.io/api/core/v1.EnvFromSource.
var envFromFields = decisions{
	"prefix":       {action: rewrite, why: "becomes part of the names"},
	"configMapRef": {action: rewrite, why: "its keys become literals, in front of env"},
	"secretRef":    {action: rewrite, why: "its keys become variables that are read from a file, in front of env"},
}

// envFields decides about k8s.io/api/core/v1.EnvVar.
var envFields = decisions{
	"name":      {action: keep},
	"value":     {action: keep},
	"valueFrom": {action: rewrite, why: "see the table of sources"},
}

// envSourceFields decides about k8s.io/api/core/v1.EnvVarSource.
var envSourceFields = decisions{
	"fieldRef":         {action: rewrite, why: "what names the parent becomes a literal; spec.nodeName stays, and so does status.podIP on a network of the pod's own"},
	"resourceFieldRef": {action: rewrite, why: "requests become literals, limits stay"},
	"configMapKeyRef":  {action: rewrite, why: "becomes a literal, or nothing if it is optional and not there"},
	"secretKeyRef":     {action: rewrite, why: "is read from a file, or becomes nothing if it is optional and not there"},
	"fileKeyRef":       {action: keep},
}
