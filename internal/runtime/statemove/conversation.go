package statemove

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A conversation is a stream with a source: one goroutine listens, and the
// handler's own speaks. The listener cannot be made to stop while it waits for
// the peer: it ends when the handler has returned, because gRPC then ends the
// stream. The server waits for it.
type conversation struct {
	server *Server
	stream grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]
	heard  chan *leaseholdv1.TransferRequest
	ended  chan error

	in     *Incoming
	number uint64 // of this stream, among those of in
}

// admit lets a source in that is expected, as soon as it is and there is room.
// No message is read before that.
func (c *conversation) admit() error {
	s := c.server
	select {
	case s.doors <- struct{}{}:
		defer func() { <-s.doors }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d streams are waiting to be let in", maxStrangers)
	}
	opening, err := openingOf(c.stream.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.stream.Context(), ticketWait)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	in, err := s.await(ctx, opening)
	if err != nil {
		return err
	}
	if err := s.allow(c.stream.Context(), in); err != nil {
		return err
	}
	next, err := c.attach(ctx, in)
	if err != nil {
		return err
	}
	if now, _ := c.report(); now.refusal != nil {
		return nil // serve says so
	}
	s.running.Go(c.listen)
	failpoint.Here("mover/before-letting-in")
	accepted := &leaseholdv1.TransferAccepted{Version: wire.Version, Next: next}
	return c.stream.Send(&leaseholdv1.TransferResponse{Kind: &leaseholdv1.TransferResponse_Accepted{Accepted: accepted}})
}

func (c *conversation) listen() {
	for {
		message, err := c.stream.Recv()
		if err != nil {
			c.ended <- err
			return
		}
		select {
		case c.heard <- message:
		case <-c.stream.Context().Done():
			return
		}
	}
}

// attach makes this stream the one that counts, and begins the transfer if it is
// the first and there is room for one more.
func (c *conversation) attach(ctx context.Context, in *Incoming) (next uint64, err error) {
	in.mu.Lock()
	first := !in.begun && in.refusal == nil
	in.mu.Unlock()
	if first {
		select {
		case c.server.slots <- struct{}{}:
		case <-ctx.Done():
			return 0, status.Errorf(codes.ResourceExhausted, "%d transfers are under way here already", MaxTransfers)
		}
	}
	next, begins := c.replace(in, first)
	switch {
	case begins:
		in.begin()
	case first: // another stream has begun it while we waited, or it has been refused
		in.Release()
	}
	return next, nil
}

// replace takes the place of the stream before, and reports whether the transfer
// begins with this one, which has a slot for it if it may.
func (c *conversation) replace(in *Incoming, may bool) (next uint64, begins bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stream++
	c.in, c.number = in, in.stream
	if begins = may && !in.begun && in.refusal == nil; begins {
		in.begun, in.origin = true, originOf(c.stream.Context())
		in.idle = time.AfterFunc(c.server.Idle, func() { in.Refuse(in.stuck()) })
	}
	in.news.spread()
	return in.next, begins
}

// serve hears what the source sends and tells it how far we are, until the
// stream ends or there is no more to be said.
func (c *conversation) serve() error {
	var told report
	for {
		now, changed := c.report()
		if !now.current {
			return status.Error(codes.Aborted, "another stream has taken the place of this one")
		}
		if done, err := c.tell(told, now); done || err != nil {
			return err
		}
		told = now
		select {
		case message := <-c.heard:
			if err := c.in.put(c.number, message); err != nil {
				c.in.Refuse(err) // the source hears of it
			}
		case err := <-c.ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-changed: // also if the server is closed
		}
	}
}

type report struct {
	current   bool // the stream is the newest
	taken     uint64
	confirmed bool
	refusal   error
}

func (c *conversation) report() (report, news) {
	in := c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	return report{in.stream == c.number, in.taken, in.confirmed, in.refusal}, in.news
}

// tell says what is new, and reports whether that was the last word.
func (c *conversation) tell(told, now report) (done bool, err error) {
	switch {
	case now.refusal != nil:
		refused := &leaseholdv1.TransferResponse_Refused{Refused: wire.FromRefusal(now.refusal)}
		return true, c.stream.Send(&leaseholdv1.TransferResponse{Kind: refused})
	case now.taken != told.taken:
		taken := &leaseholdv1.TransferResponse_Taken{Taken: &leaseholdv1.TransferTaken{Number: now.taken}}
		err = c.stream.Send(&leaseholdv1.TransferResponse{Kind: taken})
	}
	if err == nil && now.confirmed && !told.confirmed {
		failpoint.Here("mover/before-confirmation")
		confirmed := &leaseholdv1.TransferResponse_Confirmed{Confirmed: &leaseholdv1.TransferConfirmed{}}
		err = c.stream.Send(&leaseholdv1.TransferResponse{Kind: confirmed})
	}
	return false, err
}
