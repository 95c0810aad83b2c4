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

// AdoptNode records which Node object this node has, unless one is recorded already, and returns the UID of the recorded
// one. A recorded Node of another name never has the given UID.
func (s *Store) AdoptNode(name, uid string) (recorded string, err error) {
	err = s.inInactive(func(dir *os.Root) error {
		data, err := readFile(dir, stateFile)
		if errors.Is(err, fs.ErrNotExist) {
			recorded = uid
			return writeState(dir, state{Format, name, uid})
		}
		if err != nil {
			return err
		}
		var known state
		if err := json.Unmarshal(data, &known); err != nil {
			return fmt.Errorf("%s is damaged; remove it if this node still belongs to the same cluster: %w", stateFile, err)
		}
		recorded = known.NodeUID
		return nil
	})
	return recorded, err
}

func writeState(dir *os.Root, s state) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceFile(dir, stateFile, append(data, '\n'))
}
