package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// stateFile lies in the inactive directory.
const stateFile = "state.json"

// state is what must be known beside the checkpoints.
type state struct {
	Format   string `json:"format"`
	NodeName string `json:"nodeName"`
	NodeUID  string `json:"nodeUID"` // of the Node object in the cluster that the checkpoints are from
}

// ErrNoNode says that it is not recorded which Node object the checkpoints are from.
var ErrNoNode = errors.New("it is not recorded which Node object the checkpoints are from")

// Node is the UID of the Node object that the checkpoints are from. The error is ErrNoNode if none is recorded, and
// another one if that can't be read, or is of a node by another name.
func (s *Store) Node(name string) (uid string, err error) {
	err = s.inInactive(func(dir *os.Root) error {
		data, err := readFile(dir, stateFile)
		if errors.Is(err, fs.ErrNotExist) {
			return ErrNoNode
		}
		if err != nil {
			return err
		}
		var known state
		if err := json.Unmarshal(data, &known); err != nil {
			return fmt.Errorf("%s is damaged; remove it if this node still belongs to the same cluster: %w", stateFile, err)
		}
		if known.NodeName != name {
			return fmt.Errorf("%s is of the node %q; remove it if that is this node's former name", stateFile, known.NodeName)
		}
		uid = known.NodeUID
		return nil
	})
	return uid, err
}

// RecordNode records it, in place of what was recorded.
func (s *Store) RecordNode(name, uid string) error {
	return s.inInactive(func(dir *os.Root) error { return writeState(dir, state{Format, name, uid}) })
}

func writeState(dir *os.Root, s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceFile(dir, stateFile, append(data, '\n'))
}
