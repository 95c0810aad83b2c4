package manifest

const (
	whyScheduling = "a static pod is on its node already, and the kubelet would judge by node labels that it does not know without an API server"
	whyAdmission  = "the API server's admission acts on it, before a pod is on its node"
)

// objectMetaFields decides about k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta.
var objectMetaFields = decisions{
	"name":                       {action: keep, why: "the kubelet adds the node's name to it"},
	"generateName":               {action: strip, why: "only the API server acts on it"},
	"namespace":                  {action: keep},
	"selfLink":                   {action: strip, why: "the API server's bookkeeping"},
	"uid":                        {action: strip, why: "the kubelet would take the checkpoint for its parent; it derives a static pod's UID from the manifest"},
	"resourceVersion":            {action: strip, why: "the API server's bookkeeping"},
	"generation":                 {action: strip, why: "the API server's bookkeeping"},
	"creationTimestamp":          {action: strip, why: "the API server's bookkeeping"},
	"deletionTimestamp":          {action: strip, why: "the kubelet would end the checkpoint at once"},
	"deletionGracePeriodSeconds": {action: strip, why: "belongs to the deletion timestamp"},
	"labels":                     {action: rewrite, why: "kept, so that Services and network policies still select the pod, but those by which a controller tells its pods apart"},
	"annotations":                {action: rewrite, why: "kept, but the kubelet's own, ours, kubectl's last-applied configuration and what a network plugin noted about the parent's sandbox; ours about the checkpoint are added"},
	"ownerReferences":            {action: strip, why: "the mirror of a static pod is owned by its Node"},
	"finalizers":                 {action: strip, why: "nobody would remove them"},
	"managedFields":              {action: strip, why: "the API server's bookkeeping"},
}

// podSpecFields decides about k8s.io/api/core/v1.PodSpec.
var podSpecFields = decisions{
	"volumes":                       {action: rewrite, why: "see the table of volumes; a volume that no container mounts is dropped, as the kubelet never sets it up"},
	"initContainers":                {action: rewrite, why: "see the table of containers"},
	"containers":                    {action: rewrite, why: "see the table of containers"},
	"ephemeralContainers":           {action: strip, why: "a pod can't be created with them"},
	"restartPolicy":                 {action: rewrite, why: "only Always is accepted: a static pod that has ended is never started again, or runs once more at each boot"},
	"terminationGracePeriodSeconds": {action: keep},
	"activeDeadlineSeconds":         {action: strip, why: "the checkpoint would end for good in the middle of an outage"},
	"dnsPolicy":                     {action: keep, why: "the kubelet knows the cluster's DNS from its own configuration"},
	"nodeSelector":                  {action: strip, why: whyScheduling},
	"serviceAccountName":            {action: strip, why: "static pods may not have one; the token is a file in a volume and is kept"},
	"serviceAccount":                {action: strip, why: "static pods may not have one"},
	"automountServiceAccountToken":  {action: strip, why: whyAdmission},
	"nodeName":                      {action: strip, why: "the kubelet sets it"},
	"hostNetwork":                   {action: keep},
	"hostPID":                       {action: keep},
	"hostIPC":                       {action: keep},
	"shareProcessNamespace":         {action: keep},
	"securityContext":               {action: keep, why: "but the kubelet does not apply fsGroup to a hostPath volume: the files are copied with the owners that the parent saw"},
	"imagePullSecrets":              {action: strip, why: "static pods may not have them; a warning says what follows"},
	"hostname":                      {action: rewrite, why: "set to the parent's name where that was its hostname"},
	"subdomain":                     {action: keep},
	"affinity":                      {action: strip, why: whyScheduling},
	"schedulerName":                 {action: strip, why: "a static pod is not scheduled"},
	"tolerations":                   {action: keep, why: "the kubelet does not evict static pods, but tools that read the mirror pod may care"},
	"hostAliases":                   {action: keep},
	"priorityClassName":             {action: keep, why: "system-node-critical protects the processes from the kernel's OOM killer"},
	"priority":                      {action: keep, why: "the kubelet goes by the number"},
	"dnsConfig":                     {action: keep},
	"readinessGates":                {action: strip, why: "who sets those conditions does so through the API server"},
	"runtimeClassName":              {action: refuse, why: "the kubelet reads the RuntimeClass from the API server before it creates the sandbox", remedy: "run the pod without a runtime class if its isolation may be given up"},
	"enableServiceLinks":            {action: rewrite, why: "set to false: the kubelet has no Services without an API server; KUBERNETES_SERVICE_HOST and _PORT become literals"},
	"preemptionPolicy":              {action: keep, why: "admission compares it with the priority class"},
	"overhead":                      {action: strip, why: "belongs to the runtime class"},
	"topologySpreadConstraints":     {action: strip, why: whyScheduling},
	"setHostnameAsFQDN":             {action: keep},
	"os":                            {action: rewrite, why: "kept, but Windows is refused"},
	"hostUsers":                     {action: keep, why: "hostPath volumes then need a file system with ID-mapped mounts; a warning says so"},
	"schedulingGates":               {action: strip, why: whyScheduling},
	"resourceClaims":                {action: refuse, why: "the kubelet prepares the claimed devices with the help of the API server", remedy: "there is no way to checkpoint a pod with resource claims"},
	"resources":                     {action: rewrite, why: "as a container's"},
	"hostnameOverride":              {action: keep},
	"schedulingGroup":               {action: strip, why: "a static pod is not scheduled"},
	"evictionResponders":            {action: strip, why: "static pods are not evicted through the API server"},
}
