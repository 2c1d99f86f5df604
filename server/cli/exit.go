package cli

import (
	"fmt"
	"io"
)

// A Status is how a command ended that did what it was asked, and has already
// told the user: the process's exit status. It is an error so that it can be
// returned like one.
type Status int

// The exit statuses. Scripts rely on them: they are never renumbered.
const (
	StatusOK          Status = 0
	StatusViolated    Status = 1   // an invariant did not hold
	StatusTrouble     Status = 2   // it could not be done as asked: wrong flags, no disk space
	statusSurvived    Status = 3   // a bug was planted, and nothing noticed it
	StatusInterrupted Status = 130 // as shells report SIGINT
)

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Failed is an error that other flags would not have avoided. What is not
// failed is answered with a hint to --help.
type Failed struct{ error }

func (f Failed) Unwrap() error { return f.error }

// Fail marks an error as one that other flags would not have avoided.
func Fail(err error) error { return Failed{err} }

// Write writes what a command has to say.
func Write(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return Fail(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}
