package fleasecontrol

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/leasehold-dev/leasehold/server/proc"
)

// Stdio is the standard input and output of a command.
type Stdio struct {
	In        io.Reader
	Out, Errs io.Writer
}

// Hold holds the lease until ctx ends. An error means that the lease was lost.
func (l *Lease) Hold(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.Done():
		return l.lost()
	}
}

// Run runs a command while the lease is held, and returns how it ended. If ctx ends,
// the command is asked to terminate; if the lease is lost, its process group is killed.
func (l *Lease) Run(ctx context.Context, line []string, stdio Stdio) error {
	env := []string{"FLEASE_RESOURCE=" + l.Resource, "FLEASE_FENCE=" + strconv.FormatUint(l.Fence, 10)}
	command, err := proc.StartGroup(line, env, stdio.In, stdio.Out, stdio.Errs)
	if err != nil {
		return err
	}
	defer command.Close()
	interrupted := ctx.Done()
	for {
		select {
		case err := <-command.Ended():
			return err
		case <-interrupted:
			command.Terminate()
			interrupted = nil
		case <-l.Done():
			command.Kill()
			return l.lost()
		}
	}
}

func (l *Lease) lost() error { return fmt.Errorf("%s: the lease is over: %w", l.Resource, l.Err()) }
