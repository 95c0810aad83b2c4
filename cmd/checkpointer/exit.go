package main

import "errors"

// Exit codes. Others are a command's own and documented with it.
const (
	exitFailure = 1 // what was asked for could not be done
	exitUsage   = 2 // the command line, the environment or the input is wrong
)

// exitError is an error with the exit code that it ends the process with.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

func usage(err error) error { return exitError{exitUsage, err} }

// exitCode is 0 for nil, the code of an exitError, and else failure.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if coded := (exitError{}); errors.As(err, &coded) {
		return coded.code
	}
	return exitFailure
}
