package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"

	"github.com/pod-checkpointer/pod-checkpointer/internal/checkpoint"
)

// stateFile lies in the inactive directory.
const stateFile = "state.json"

// state is what must be known beside the checkpoints.
type state struct {
	Format   string                                  `json:"format"`
	NodeName string                                  `json:"nodeName,omitempty"`
	NodeUID  string                                  `json:"nodeUID,omitempty"` // of the Node object in the cluster that the checkpoints are from
	Marks    map[checkpoint.Lineage]checkpoint.Marks `json:"marks,omitempty"`
}

// ErrNoNode says that it is not recorded which Node object the checkpoints are from.
var ErrNoNode = errors.New("it is not recorded which Node object the checkpoints are from")

// Node is the UID of the Node object that the checkpoints are from. The error is ErrNoNode if none is recorded, and
// another one if that can't be read, or is of a node by another name.
func (s *Store) Node(name string) (uid string, err error) {
	err = s.inInactive(func(dir *os.Root) error {
		known, err := readState(dir)
		switch {
		case err != nil:
			return err
		case known.NodeUID == "":
			return ErrNoNode
		case known.NodeName != name:
			return fmt.Errorf("%s is of the node %q; remove it if that is this node's former name", stateFile, known.NodeName)
		}
		uid = known.NodeUID
		return nil
	})
	return uid, err
}

// RecordNode records it, in place of what was recorded.
func (s *Store) RecordNode(name, uid string) error {
	return s.inInactive(func(dir *os.Root) error {
		known, _ := readState(dir) // of a damaged one nothing is left to keep
		known.NodeName, known.NodeUID = name, uid
		return writeState(dir, known)
	})
}

// Mark records the marks of a lineage, in place of those that were recorded; none for the zero value.
func (s *Store) Mark(lineage checkpoint.Lineage, marks checkpoint.Marks) error {
	return s.inInactive(func(dir *os.Root) error {
		known, err := readState(dir)
		if err != nil {
			return err
		}
		all := maps.Clone(known.Marks)
		if all == nil {
			all = make(map[checkpoint.Lineage]checkpoint.Marks)
		}
		all[lineage] = marks
		maps.DeleteFunc(all, func(_ checkpoint.Lineage, m checkpoint.Marks) bool { return m == checkpoint.Marks{} })
		known.Marks = all
		return writeState(dir, known)
	})
}

// readState is empty if nothing is recorded.
func readState(dir *os.Root) (known state, err error) {
	data, err := readFile(dir, stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return state{}, fmt.Errorf("%s is damaged; remove it if this node still belongs to the same cluster: %w", stateFile, err)
	}
	return known, nil
}

func writeState(dir *os.Root, s state) error {
	s.Format = Format
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceFile(dir, stateFile, append(data, '\n'))
}
