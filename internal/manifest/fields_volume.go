package manifest

const (
	whyCopied   = "becomes a hostPath to a copy of what the kubelet shows the parent"
	whyCloud    = "the kubelet attaches it through a CSI driver, which needs the API server"
	whyRemoved  = "Kubernetes has no plugin for it any more"
	whyAttached = "the kubelet waits for the API server to say that it is attached"
	useLocal    = "use a PersistentVolume of type local, hostPath or nfs"
	useHostPath = "use a hostPath, a local PersistentVolume or an emptyDir"

	makeClaimAgain = "delete the claim and make it again, so that it gets a volume of its own"
)

// volumeFields decides about k8s.io/api/core/v1.VolumeSource.
var volumeFields = decisions{
	"hostPath":              {action: keep},
	"emptyDir":              {action: keep, why: "it begins empty: what the parent wrote there stays the parent's"},
	"image":                 {action: rewrite, why: "kept; the pull policy as a container's"},
	"nfs":                   {action: keep},
	"secret":                {action: rewrite, why: whyCopied},
	"configMap":             {action: rewrite, why: whyCopied},
	"projected":             {action: rewrite, why: whyCopied + ", see the table of projections"},
	"downwardAPI":           {action: rewrite, why: whyCopied + ", with the parent's values"},
	"persistentVolumeClaim": {action: rewrite, why: "becomes the hostPath, local directory or NFS export that the claim is bound to; every other is refused"},
	"csi":                   {action: refuse, why: "static pods may not use CSI volumes: their drivers need the API server", remedy: useHostPath},
	"ephemeral":             {action: refuse, why: "its PersistentVolumeClaim is made by the API server for this one pod", remedy: useHostPath},
	"gcePersistentDisk":     {action: refuse, why: whyCloud, remedy: useHostPath},
	"awsElasticBlockStore":  {action: refuse, why: whyCloud, remedy: useHostPath},
	"azureDisk":             {action: refuse, why: whyCloud, remedy: useHostPath},
	"azureFile":             {action: refuse, why: "its credentials are a Secret that the kubelet reads from the API server", remedy: useHostPath},
	"cinder":                {action: refuse, why: whyCloud, remedy: useHostPath},
	"vsphereVolume":         {action: refuse, why: whyCloud, remedy: useHostPath},
	"portworxVolume":        {action: refuse, why: whyCloud, remedy: useHostPath},
	"iscsi":                 {action: refuse, why: whyAttached, remedy: useHostPath},
	"fc":                    {action: refuse, why: whyAttached, remedy: useHostPath},
	"flexVolume":            {action: refuse, why: whyAttached, remedy: useHostPath},
	"gitRepo":               {action: refuse, why: "Kubernetes has switched it off for good", remedy: "clone in an init container into an emptyDir"},
	"glusterfs":             {action: refuse, why: whyRemoved, remedy: useHostPath},
	"rbd":                   {action: refuse, why: whyRemoved, remedy: useHostPath},
	"cephfs":                {action: refuse, why: whyRemoved, remedy: useHostPath},
	"flocker":               {action: refuse, why: whyRemoved, remedy: useHostPath},
	"quobyte":               {action: refuse, why: whyRemoved, remedy: useHostPath},
	"photonPersistentDisk":  {action: refuse, why: whyRemoved, remedy: useHostPath},
	"scaleIO":               {action: refuse, why: whyRemoved, remedy: useHostPath},
	"storageos":             {action: refuse, why: whyRemoved, remedy: useHostPath},
}

// projectedFields decides about k8s.io/api/core/v1.ProjectedVolumeSource.
var projectedFields = decisions{
	"sources":     {action: rewrite, why: "see the table of projections"},
	"defaultMode": {action: rewrite, why: "the files are copied with their modes"},
	"defaultUser": {action: rewrite, why: "the files are copied with their owners"},
}

// projectionFields decides about k8s.io/api/core/v1.VolumeProjection. All of them lie in one volume as files, which are
// copied as they are.
var projectionFields = decisions{
	"secret":              {action: rewrite, why: "copied"},
	"downwardAPI":         {action: rewrite, why: "copied"},
	"configMap":           {action: rewrite, why: "copied"},
	"serviceAccountToken": {action: rewrite, why: "copied; a token for an audience of its own gets a warning, because nobody renews it without an API server"},
	"clusterTrustBundle":  {action: rewrite, why: "copied"},
	"podCertificate":      {action: rewrite, why: "copied, with a warning: it is short-lived and nobody renews it without an API server"},
}

// persistentVolumeFields decides about k8s.io/api/core/v1.PersistentVolumeSource.
var persistentVolumeFields = decisions{
	"hostPath":             {action: keep},
	"local":                {action: rewrite, why: "becomes a hostPath, unless it is a block device"},
	"nfs":                  {action: rewrite, why: "kept, with a warning if it has mount options: a volume in a pod can't have them"},
	"csi":                  {action: refuse, why: "the kubelet attaches it through a CSI driver, which needs the API server", remedy: useLocal},
	"gcePersistentDisk":    {action: refuse, why: whyCloud, remedy: useLocal},
	"awsElasticBlockStore": {action: refuse, why: whyCloud, remedy: useLocal},
	"azureDisk":            {action: refuse, why: whyCloud, remedy: useLocal},
	"azureFile":            {action: refuse, why: whyCloud, remedy: useLocal},
	"cinder":               {action: refuse, why: whyCloud, remedy: useLocal},
	"vsphereVolume":        {action: refuse, why: whyCloud, remedy: useLocal},
	"portworxVolume":       {action: refuse, why: whyCloud, remedy: useLocal},
	"iscsi":                {action: refuse, why: whyAttached, remedy: useLocal},
	"fc":                   {action: refuse, why: whyAttached, remedy: useLocal},
	"flexVolume":           {action: refuse, why: whyAttached, remedy: useLocal},
	"glusterfs":            {action: refuse, why: whyRemoved, remedy: useLocal},
	"rbd":                  {action: refuse, why: whyRemoved, remedy: useLocal},
	"cephfs":               {action: refuse, why: whyRemoved, remedy: useLocal},
	"flocker":              {action: refuse, why: whyRemoved, remedy: useLocal},
	"quobyte":              {action: refuse, why: whyRemoved, remedy: useLocal},
	"photonPersistentDisk": {action: refuse, why: whyRemoved, remedy: useLocal},
	"scaleIO":              {action: refuse, why: whyRemoved, remedy: useLocal},
	"storageos":            {action: refuse, why: whyRemoved, remedy: useLocal},
}
