package broadcast

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold"
)

// Config configures Owners and Lookups.
type Config struct {
	// Self is the manager's address, for errors.
	Self string
	// MaxStreams is the maximum number of connected owners or lookups.
	MaxStreams int
	// MaxDirect is the maximum number of lookups of a namespace that get updates through their queues; with more,
	// updates go in waves. Default 512.
	MaxDirect int
}

// A group is the common part of Owners and Lookups: a bounded number of streams.
type group struct {
	cfg     Config
	done    <-chan struct{} // closed when the manager ends
	running sync.WaitGroup  // receivers and waves

	mu     sync.Mutex
	closed bool
	count  int
}

func newGroup(ctx context.Context, cfg Config) group { return group{cfg: cfg, done: ctx.Done()} }

// admit counts a stream, or returns an error at the limit. g.mu is held.
func (g *group) admit(op, kind, hint string) error {
	select {
	case <-g.done:
		return &leasehold.Error{Op: op, Kind: leasehold.ErrClosed}
	default:
	}
	if g.count >= g.cfg.MaxStreams {
		return leasehold.Errorf(op, leasehold.ErrLimit, "", "connection rejected: this manager has %d %s connected, its limit%s", g.count, kind, hint)
	}
	g.count++
	return nil
}

// Count returns the number of streams.
func (g *group) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

// Close waits for all goroutines. The context has ended, and the gRPC server has stopped.
func (g *group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
