package manifest

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nestedMountPoints lists the directories that must exist in a volume because other volumes are mounted inside it, by
// the rules of k8s.io/kubernetes/pkg/volume/util.getNestedMountpoints: the kubelet makes them in volumes that it fills
// itself, and not in a hostPath, whose read-only mount the runtime can't make them in either.
func nestedMountPoints(volume string, spec *corev1.PodSpec) []string {
	var dirs []string
	for container := range containersOf(spec) {
		var all, own []string
		for _, mount := range container.VolumeMounts {
			mountPath := path.Clean(mount.MountPath)
			all = append(all, mountPath)
			if mount.Name == volume {
				own = append(own, mountPath)
			}
		}
		slices.Sort(all)
		for _, outer := range own {
			dirs = append(dirs, directlyBelow(outer, all)...)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// directlyBelow lists, relative to outer, the paths of sorted that lie below it and not below another of them.
func directlyBelow(outer string, sorted []string) []string {
	var below []string
	for _, mountPath := range sorted {
		relative, ok := strings.CutPrefix(mountPath, outer+"/")
		if ok && !slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(relative, dir+"/") }) {
			below = append(below, relative)
		}
	}
	return below
}
