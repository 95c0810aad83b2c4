package kubeletaccept

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	volumeutil "k8s.io/kubernetes/pkg/volume/util"
)

// sameMountPoints compares the directories that an asset must hold with those that the kubelet makes in the parent's
// volume.
func sameMountPoints(t *testing.T, j *judgment) {
	t.Helper()
	base := t.TempDir()
	for _, asset := range j.result.Assets {
		dir := filepath.Join(base, asset.Volume)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := volumeutil.MakeNestedMountpoints(asset.Volume, dir, *j.parent); err != nil {
			t.Fatal(err)
		}
		want, got := make(map[string]bool), make(map[string]bool)
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			want[strings.TrimPrefix(path, dir)] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(slices.Clone(asset.Dirs), "") {
			for ; path != "." && path != ""; path = filepath.Dir(path) {
				got["/"+path] = true
			}
			got[""] = true
		}
		if len(got) != len(want) {
			t.Errorf("%s/%s: volume %s has the directories %v, and the kubelet makes %v", j.parent.Namespace, j.parent.Name, asset.Volume, got, want)
		}
	}
}
