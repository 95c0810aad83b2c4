package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// explain names the limit that an inotify error is about: the kernel's own words for it mislead.
func explain(err error) error {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("too many inotify instances on this node: raise the sysctl fs.inotify.max_user_instances: %w", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("too many inotify watches on this node: raise the sysctl fs.inotify.max_user_watches: %w", err)
	default:
		return err
	}
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
