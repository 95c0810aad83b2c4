package manifest

import (
	"errors"
	"fmt"
	"os"
)

// roots are the open directories. They are opened for each operation, because a directory may be removed, made again or
// mounted over, and a handle would stay with the old one.
type roots struct{ manifests, inactive, assets *os.Root }

func (s *Store) open() (*roots, error) {
	on := new(roots)
	var err error
	// The static pod directory is never made: a kubelet that lacks it reads another.
	if on.manifests, err = os.OpenRoot(s.dirs.Manifests); err != nil {
		return nil, fmt.Errorf("the kubelet's static pod directory (its staticPodPath, our --manifests-dir): %w", err)
	}
	if on.inactive, err = openOrCreate(s.dirs.Inactive); err != nil {
		return nil, errors.Join(fmt.Errorf("the directory of stored checkpoints (--inactive-dir): %w", err), on.Close())
	}
	if on.assets, err = openOrCreate(s.dirs.Assets); err != nil {
		return nil, errors.Join(fmt.Errorf("the directory of the checkpoints' assets (--assets-dir): %w", err), on.Close())
	}
	return on, nil
}

func (on *roots) Close() (err error) {
	for _, root := range []*os.Root{on.manifests, on.inactive, on.assets} {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
	}
	return err
}
