package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// Problem is something on disk that others did to checkpoints and that is not, or may not be, repaired.
type Problem struct {
	Path string // of a file or directory
	What string // is wrong with it, and what to do
}

// problemError is why something is not done: one of Problems, which is told by itself.
type problemError struct{ error }

// IsProblem says whether an action was refused because of one of Problems.
func IsProblem(err error) bool { return errors.As(err, new(problemError)) }

// Problems are those that the last List found, by path.
func (s *Store) Problems() (problems []Problem) {
	for _, r := range s.records {
		pod := r.checkpoint.Namespace + "/" + r.checkpoint.Name
		for _, file := range s.Foreign(r.key()) {
			what := "it declares the same pod as the checkpoint of " + pod + ", which is not activated beside it: remove it, or the annotation " + AnnotationCheckpoint + " of the pod"
			if r.checkpoint.Active != checkpoint.Missing {
				what = "it declares the same pod as the active checkpoint of " + pod + ", and the kubelet runs now one and now the other: remove it"
			}
			problems = append(problems, Problem{filepath.Join(s.dirs.Manifests, file), what})
		}
		if len(r.damaged) > 0 {
			problems = append(problems, Problem{filepath.Join(s.dirs.Assets, r.base()), fmt.Sprintf(
				"volumes of the checkpoint of %s are missing or damaged: %s; they are written again while the pod runs on this node, and without them the checkpoint is not activated",
				pod, strings.Join(r.damaged, ", "),
			)})
		}
	}
	for name := range s.strange[s.dirs.Inactive] {
		if s.records[name] == nil {
			problems = append(problems, Problem{
				filepath.Join(s.dirs.Inactive, name),
				"it is not, or no longer, the manifest of a checkpoint, and there is no active copy to repair it from: it is written again while its pod runs on this node; remove it if there is no such pod",
			})
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What)) })
	// Of a file that stands beside two generations, what is active counts: it comes first.
	return slices.CompactFunc(problems, func(a, b Problem) bool { return a.Path == b.Path })
}
