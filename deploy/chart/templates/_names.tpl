{{- /* The variables of those paths and namespaces that are not the agent's defaults. */}}
{{- define "pod-checkpointer.environment" }}
{{- with .Values }}
{{- if .namespaces }}
CHECKPOINTER_NAMESPACES: {{ join "," .namespaces }}
{{- end }}
{{- if ne .kubeletDir "/var/lib/kubelet" }}
CHECKPOINTER_KUBELET_DIR: {{ .kubeletDir }}
{{- end }}
{{- if .rbac.create }}
CHECKPOINTER_KUBECONFIG: /etc/pod-checkpointer/kubeconfig
{{- else if ne (printf "%s/%s" .kubernetesDir .kubeconfig) "/etc/kubernetes/kubelet.conf" }}
CHECKPOINTER_KUBECONFIG: {{ .kubernetesDir }}/{{ .kubeconfig }}
{{- end }}
{{- if ne (printf "%s/%s" .kubernetesDir .manifests) "/etc/kubernetes/manifests" }}
CHECKPOINTER_MANIFESTS_DIR: {{ .kubernetesDir }}/{{ .manifests }}
{{- end }}
{{- if ne .kubernetesDir "/etc/kubernetes" }}
CHECKPOINTER_INACTIVE_DIR: {{ .kubernetesDir }}/inactive-manifests
CHECKPOINTER_ASSETS_DIR: {{ .kubernetesDir }}/checkpoint-assets
{{- end }}
{{- end }}
{{- end }}

{{- /* Another server is another name, so that the agents are rolled out with it. */}}
{{- define "pod-checkpointer.configMap" -}}
pod-checkpointer-{{ sha256sum .Values.rbac.server | trunc 10 }}
{{- end }}
