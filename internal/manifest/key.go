package manifest

import (
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Key names a checkpoint.
type Key struct {
	Namespace, Name string // its parent's
	Previous        bool   // it is the generation before; see checkpoint.Checkpoint.Previous
}

// KeyOf names a checkpoint that was listed.
func KeyOf(c checkpoint.Checkpoint) Key {
	return Key{Namespace: c.Namespace, Name: c.Name, Previous: c.Previous}
}

const previousSuffix = "_previous"

// FileName is the name of the checkpoint's manifest. The underscore is legal in neither a namespace nor a pod's name, so
// that no two checkpoints share a file.
func (k Key) FileName() string { return k.base() + ".json" }

// base is the name of the directory that the checkpoint's assets lie in.
func (k Key) base() string {
	base := k.Namespace + "_" + k.Name
	if k.Previous {
		base += previousSuffix
	}
	return base
}

// other is the other generation of the same pod.
func (k Key) other() Key {
	k.Previous = !k.Previous
	return k
}

// mayBeOurs says whether a file name is one that Key.FileName gives.
func mayBeOurs(name string) bool {
	return strings.HasSuffix(name, ".json") && strings.Contains(name, "_") && !strings.HasPrefix(name, ".")
}

// isPrevious says whether a file name is that of a generation before.
func isPrevious(name string) bool {
	base, ok := strings.CutSuffix(name, previousSuffix+".json")
	return ok && strings.Contains(base, "_")
}
