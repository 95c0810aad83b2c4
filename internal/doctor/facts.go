package doctor

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pod-checkpointer/pod-checkpointer/internal/apiclient"
	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
	"github.com/pod-checkpointer/pod-checkpointer/internal/kubelet"
	"github.com/pod-checkpointer/pod-checkpointer/internal/manifest"
	"github.com/pod-checkpointer/pod-checkpointer/internal/status"
)

// Place is where to look.
type Place struct {
	NodeName   string // empty: not known
	Dirs       manifest.Dirs
	Kubeconfig string
	Runtime    string // endpoint, as unix:///path
	RuntimeErr error  // why there is none

	// NodeUID asks the API server for the UID of this node's Node object; nil, or an error: not known.
	NodeUID func(context.Context) (string, error)
}

// Facts are what was found. Of what could not be found out, the zero value is there, or an error beside it.
type Facts struct {
	Now    time.Time
	Report *status.Report // nil: no agent has spoken since boot
	Held   bool           // the lock

	DiskErr     error
	Checkpoints []Checkpoint
	Others      []*corev1.Pod // what else the static pod directory declares

	RuntimeErr error
	Runtime    kubelet.Inspection

	RecordedUID, NodeUID string
	NodeErr              error // of the record

	Spaces     []Space
	CertErr    error
	Cert       time.Time // end of the node's client certificate; zero: it has none
	Kubeconfig string
	Dirs       manifest.Dirs
}

// Checkpoint is one on disk.
type Checkpoint struct {
	checkpoint.Checkpoint
	Pod      *corev1.Pod
	Missing  []string // volumes that are not whole
	AssetErr error
	Twins    []string // manifests of the same pod that are not ours
}

// Space is the room that is left in the file system of a directory.
type Space struct {
	Path                string
	Bytes, Files        uint64
	BytesPart, FilePart float64 // of all that an ordinary file system has, 0 to 1
}

// Gather looks at everything. The report of the agent is the caller's to read.
func Gather(ctx context.Context, p Place, report *status.Report, held bool) *Facts {
	f := &Facts{Now: time.Now(), Report: report, Held: held, Kubeconfig: p.Kubeconfig, Dirs: p.Dirs}
	store := manifest.ReadStore(p.Dirs)
	f.gatherDisk(store)
	f.Others = others(p.Dirs.Manifests)
	if f.RuntimeErr = p.RuntimeErr; f.RuntimeErr == nil {
		f.Runtime, f.RuntimeErr = kubelet.Inspect(ctx, p.Runtime, f.images())
	}
	if p.NodeName != "" {
		f.RecordedUID, f.NodeErr = store.Node(p.NodeName)
	}
	if errors.Is(f.NodeErr, manifest.ErrNoNode) {
		f.NodeErr = nil // it is recorded once the API server serves
	}
	if p.NodeUID != nil {
		f.NodeUID, _ = p.NodeUID(ctx)
	}
	f.Cert, f.CertErr = apiclient.CertificateExpiry(p.Kubeconfig)
	for _, dir := range []string{p.Dirs.Manifests, p.Dirs.Inactive, p.Dirs.Assets} {
		if space, err := spaceOf(dir); err == nil {
			f.Spaces = append(f.Spaces, space)
		}
	}
	return f
}

func (f *Facts) gatherDisk(store *manifest.Store) {
	disk, err := store.List()
	f.DiskErr = err
	for _, c := range disk.Checkpoints {
		key := manifest.KeyOf(c)
		found := Checkpoint{Checkpoint: c, Twins: store.Foreign(key)}
		found.Pod, _ = store.Pod(key)
		found.Missing, found.AssetErr = store.MissingAssets(key)
		f.Checkpoints = append(f.Checkpoints, found)
	}
}

// images are those of every checkpoint, in order.
func (f *Facts) images() []string {
	all := make(map[string]bool)
	for _, c := range f.Checkpoints {
		for _, image := range c.images() {
			all[image] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (c *Checkpoint) images() (images []string) {
	for _, list := range [][]corev1.Container{c.Pod.Spec.InitContainers, c.Pod.Spec.Containers} {
		for _, container := range list {
			images = append(images, container.Image)
		}
	}
	return images
}

// others reads what else lies in the static pod directory, as far as it is pods.
func others(dir string) (pods []*corev1.Pod) {
	entries, _ := os.ReadDir(dir) // a directory that can't be read is a finding already
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue // the kubelet ignores it
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		var pod corev1.Pod
		if err != nil || yaml.Unmarshal(data, &pod) != nil || pod.Kind != "Pod" {
			continue
		}
		if _, ours := pod.Annotations[manifest.AnnotationLineage]; !ours {
			pods = append(pods, &pod)
		}
	}
	return pods
}

// spaceOf looks at the directory, or where it would be made.
func spaceOf(dir string) (Space, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	if errors.Is(err, fs.ErrNotExist) {
		err = syscall.Statfs(filepath.Dir(dir), &s)
	}
	if err != nil {
		return Space{}, err
	}
	space := Space{Path: dir, Bytes: s.Bavail * uint64(s.Bsize), Files: s.Ffree, BytesPart: 1, FilePart: 1}
	if s.Blocks > 0 {
		space.BytesPart = float64(s.Bavail) / float64(s.Blocks)
	}
	if s.Files > 0 { // some file systems have no limit
		space.FilePart = float64(s.Ffree) / float64(s.Files)
	}
	return space, nil
}

// rows are the lineages of which the agent told.
func (f *Facts) rows() []status.Lineage {
	if f.Report == nil {
		return nil
	}
	return f.Report.Lineages
}

// self are the agent's own checkpoints; false if nobody told which they are.
func (f *Facts) self() (own []*Checkpoint, known bool) {
	for _, row := range f.rows() {
		if !row.Self {
			continue
		}
		for i := range f.Checkpoints {
			if string(f.Checkpoints[i].Lineage) == row.Lineage {
				own = append(own, &f.Checkpoints[i])
			}
		}
	}
	return own, f.Report != nil
}

func (f *Facts) isSelf(c *Checkpoint) bool {
	own, _ := f.self()
	return slices.Contains(own, c)
}

// sandbox is the latest sandbox, READY or not, that the kubelet made of the checkpoint's file.
func (f *Facts) sandbox(c *Checkpoint) *checkpoint.Sandbox {
	var found *checkpoint.Sandbox
	for i := range f.Runtime.Sandboxes {
		s := &f.Runtime.Sandboxes[i]
		if s.FromFile && s.Of(&c.Checkpoint) && (found == nil || s.Created.After(found.Created)) {
			found = s
		}
	}
	return found
}
