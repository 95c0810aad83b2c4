package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
)

// CheckDir says whether dir is the root directory of a kubelet that has run on this node.
func CheckDir(dir string) error {
	pods := filepath.Join(dir, "pods")
	if info, err := os.Stat(pods); err != nil || !info.IsDir() {
		return fmt.Errorf("no kubelet has run in %s: it has no directory %s; --kubelet-dir names the kubelet's --root-dir, which must be mounted at the same path",
			dir, filepath.Base(pods))
	}
	return nil
}
