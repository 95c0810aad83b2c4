package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	root, err := openOrCreate(s.dirs.Inactive)
	if err != nil {
		return "", err
	}
	defer root.Close()
	data, err := readFile(root, stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = json.Marshal(state{Format, name, uid})
		if err != nil {
			return "", err
		}
		return uid, replaceFile(root, stateFile, append(data, '\n'))
	}
	if err != nil {
		return "", err
	}
	var known state
	if err := json.Unmarshal(data, &known); err != nil {
		return "", fmt.Errorf("%s is damaged; remove it if this node still belongs to the same cluster: %w", stateFile, err)
	}
	return known.NodeUID, nil
}
