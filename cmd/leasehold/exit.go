package main

import (
	"fmt"
	"io"
)

// A status is how a command ended that did what it was asked, and has already
// told the user: the process's exit status. It is an error so that it can be
// returned like one.
type status int

// The exit statuses. Scripts rely on them: they are never renumbered.
const (
	statusOK          status = 0
	statusViolated    status = 1   // an invariant did not hold
	statusTrouble     status = 2   // it could not be done as asked: wrong flags, no disk space
	statusSurvived    status = 3   // a bug was planted, and nothing noticed it
	statusInterrupted status = 130 // as shells report SIGINT
)

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// failed is an error that other flags would not have avoided. What is not
// failed is answered with a hint to --help.
type failed struct{ error }

func (f failed) Unwrap() error { return f.error }

// fail marks an error as one that other flags would not have avoided.
func fail(err error) error { return failed{err} }

// write writes what a command has to say.
func write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fail(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}
