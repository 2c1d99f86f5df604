package supervisor

import (
	"context"
	"log/slog"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/internal/runtime/supervise"
)

// Config configures a supervisor.
type Config struct {
	// Command is the program, which is searched in PATH, and its arguments.
	Command []string

	// Report sends a death notice to the managers of a session, and repeats it until a leader has
	// acknowledged it, which is nil, or the context ends. Recorded means that its leases have ended.
	Report func(ctx context.Context, d *supervise.Death) (recorded bool, err error)
	// NoticeTimeout bounds the time between the end of the child and that of the supervisor.
	NoticeTimeout time.Duration

	Logger *slog.Logger
}

// An Exit is how the child has ended.
type Exit struct {
	Code   int            // exit status, if Signal is 0
	Signal syscall.Signal // that ended it
}

// Status is the exit status for the supervisor, as shells compute it.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}
