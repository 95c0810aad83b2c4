package manifest

import (
	"errors"
	"fmt"
	"syscall"
)

// diskError says where a system call failed, and what a person can do.
type diskError struct {
	dir string
	err error
}

// explain makes a diskError of what a system call in dir returned. Other errors explain themselves.
func explain(dir string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || errors.As(err, new(*diskError)) {
		return err
	}
	return &diskError{dir, err}
}

func (e *diskError) Unwrap() error { return e.err }

func (e *diskError) Error() string { return fmt.Sprintf("in %s: %v%s", e.dir, e.err, e.remedy()) }

func (e *diskError) remedy() string {
	var errno syscall.Errno
	errors.As(e.err, &errno)
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return " (free space, or inodes, on this disk)"
	case syscall.EROFS:
		return " (the disk is read-only: the kernel's log may say why; remount it read-write)"
	case syscall.EIO:
		return " (the disk fails: see the kernel's log)"
	case syscall.EPERM:
		return " (not even root may: lsattr shows whether something here is immutable)"
	case syscall.ENOTEMPTY:
		return " (a directory that holds something is in the place of a file of ours: move it away)"
	case syscall.EACCES:
		return " (the checkpointer must run as root, and no security module forbid it)"
	default:
		return ""
	}
}
