package manager

import (
	"context"
	"errors"
	"io"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
)

// A conversation is a stream with a peer: one goroutine listens, and answers if it
// can at once; the handler's own says everything else.
type conversation[Req any] struct {
	ctx   context.Context //nolint:containedctx // it is the stream's
	recv  func() (*Req, error)
	hear  func(*Req) error // an error ends the conversation
	ready <-chan struct{}  // there is something to be said
	speak func() error     // says it
	stop  <-chan struct{}  // ends the conversation
}

// converse speaks until the peer hangs up, something is wrong, the peer may not
// speak any more, or the manager ends. The listener cannot be made to stop while it waits for the peer: it
// ends when the handler has returned, because gRPC then ends the stream. The
// manager waits for it.
func converse[Req any](m *Manager, c conversation[Req]) error {
	ended := make(chan error, 1)
	m.running.Go(func() { ended <- listen(c) })
	for {
		select {
		case why := <-ended:
			if errors.Is(why, io.EOF) {
				return nil
			}
			return wire.FromError(why)
		case <-c.ctx.Done():
			return wire.FromError(c.ctx.Err()) // the policy knows why, if it was that
		case <-c.stop:
			return wire.FromError(leasehold.Errorf("serve", leasehold.ErrClosed, m.cfg.Advertise, "another stream has taken the place of this one"))
		case <-m.ctx.Done():
			return wire.FromError(leasehold.Errorf("serve", leasehold.ErrUnavailable, m.cfg.Advertise, "this manager is shutting down"))
		case <-c.ready:
			if err := c.speak(); err != nil {
				return err
			}
		}
	}
}

func listen[Req any](c conversation[Req]) error {
	for {
		message, err := c.recv()
		if err != nil {
			return err
		}
		if err := c.hear(message); err != nil {
			return err
		}
	}
}
