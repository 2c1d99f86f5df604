// Package actor has the processes of a chaos run that are not managers: owners and callers of a service of
// registers, and stores. They are hidden subcommands of the leasehold-lab command.
//
// An owner keeps registers in memory, like figure 4 of the PRS paper, and reports continuously which keys it
// holds. A caller follows the lease table, reads and writes registers, and records the results. Both survive
// every fault, unless they are killed.
package actor

import (
	"context"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/server/proc"
)

const (
	openTimeout = 10 * time.Second       // for one attempt to join or to open a lookup
	retryEvery  = 100 * time.Millisecond // between two attempts
)

// retry calls open until it succeeds, ctx ends, or the error is permanent. A missing namespace is temporary:
// managers without a store lose it when most of them are restarted, and the run creates it again.
func retry[T any](ctx context.Context, log *slog.Logger, what string, open func(context.Context) (T, error)) (T, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, openTimeout)
		opened, err := open(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			return opened, err
		}
		switch leasehold.KindOf(err) {
		case leasehold.ErrUnavailable, leasehold.ErrNameTaken, leasehold.ErrNotFound:
		default:
			return opened, err
		}
		log.Warn(what+" failed, retrying", "why", err)
		if !proc.Pause(ctx, retryEvery) {
			return opened, err
		}
	}
}
