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

// A serverStream is a stream with a source. The handler's goroutine sends, another one receives. Recv cannot be
// interrupted: the receiving goroutine ends after the handler has returned, because gRPC then ends the stream.
// Server.Close waits for it.
type serverStream struct {
	server   *Server
	stream   grpc.BidiStreamingServer[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]
	received chan *leaseholdv1.TransferRequest
	failed   chan error // result of receive

	in         *Incoming
	generation uint64 // number of this stream; the newest is current
}

// admit accepts an authorized source, and waits for its ticket and a free slot. It reads no
// message before that.
func (c *serverStream) admit() error {
	s := c.server
	select {
	case s.pending <- struct{}{}:
		defer func() { <-s.pending }()
	default:
		return status.Errorf(codes.ResourceExhausted, "stream rejected: %d streams are pending already", maxPendingStreams)
	}
	opening, err := openingOf(c.stream.Context())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.stream.Context(), ticketWait)
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	in, err := s.awaitTicket(ctx, opening)
	if err != nil {
		return err
	}
	if err := s.authorize(c.stream.Context(), in); err != nil {
		return err
	}
	next, err := c.attach(ctx, in)
	if err != nil {
		return err
	}
	if now, _ := c.report(); now.refusal != nil {
		return nil // serve sends it
	}
	s.running.Go(c.receive)
	failpoint.Here("mover/before-letting-in")
	accepted := &leaseholdv1.TransferAccepted{Version: wire.Version, Next: next}
	return c.stream.Send(&leaseholdv1.TransferResponse{Kind: &leaseholdv1.TransferResponse_Accepted{Accepted: accepted}})
}

func (c *serverStream) receive() {
	for {
		message, err := c.stream.Recv()
		if err != nil {
			c.failed <- err
			return
		}
		select {
		case c.received <- message:
		case <-c.stream.Context().Done():
			return
		}
	}
}

// attach makes this stream current. The first stream of a transfer waits for a slot and begins the
// transfer.
func (c *serverStream) attach(ctx context.Context, in *Incoming) (next uint64, err error) {
	in.mu.Lock()
	first := !in.begun && in.refusal == nil
	in.mu.Unlock()
	if first {
		select {
		case c.server.slots <- struct{}{}:
		case <-ctx.Done():
			return 0, status.Errorf(codes.ResourceExhausted, "transfer rejected: %d transfers are active already", MaxTransfers)
		}
	}
	next, begins := c.replace(in, first)
	switch {
	case begins:
		in.begin()
	case first: // another stream has begun it meanwhile, or it was refused
		in.Release()
	}
	return next, nil
}

// replace makes this stream current, and reports whether the transfer begins with it. hasSlot: it may begin.
func (c *serverStream) replace(in *Incoming, hasSlot bool) (next uint64, begins bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.streams++
	c.in, c.generation = in, in.streams
	if begins = hasSlot && !in.begun && in.refusal == nil; begins {
		in.begun, in.origin = true, originOf(c.stream.Context())
		in.idle = time.AfterFunc(c.server.Idle, func() { in.Refuse(in.idleError()) })
	}
	in.changed.broadcast()
	return in.next, begins
}

// serve processes messages of the source and sends acks, the confirmation or the refusal, until the stream ends.
func (c *serverStream) serve() error {
	var sent report
	for {
		now, changed := c.report()
		if !now.current {
			return status.Error(codes.Aborted, "stream closed: a newer stream of this transfer has replaced it")
		}
		if done, err := c.send(sent, now); done || err != nil {
			return err
		}
		sent = now
		select {
		case message := <-c.received:
			if err := c.in.put(c.generation, message); err != nil {
				c.in.Refuse(err) // the next iteration sends it
			}
		case err := <-c.failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-changed: // also when the server is closed
		}
	}
}

// A report is the state of a transfer that the source needs.
type report struct {
	current   bool   // this stream is the newest
	taken     uint64 // number of the last acknowledged chunk
	confirmed bool
	refusal   error
}

func (c *serverStream) report() (report, notifier) {
	in := c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	return report{in.streams == c.generation, in.taken, in.confirmed, in.refusal}, in.changed
}

// send sends the changes between two reports. done: it has sent a refusal, which ends the transfer.
func (c *serverStream) send(sent, now report) (done bool, err error) {
	switch {
	case now.refusal != nil:
		refused := &leaseholdv1.TransferResponse_Refused{Refused: wire.FromRefusal(now.refusal)}
		return true, c.stream.Send(&leaseholdv1.TransferResponse{Kind: refused})
	case now.taken != sent.taken:
		taken := &leaseholdv1.TransferResponse_Taken{Taken: &leaseholdv1.TransferTaken{Number: now.taken}}
		err = c.stream.Send(&leaseholdv1.TransferResponse{Kind: taken})
	}
	if err == nil && now.confirmed && !sent.confirmed {
		failpoint.Here("mover/before-confirmation")
		confirmed := &leaseholdv1.TransferResponse_Confirmed{Confirmed: &leaseholdv1.TransferConfirmed{}}
		err = c.stream.Send(&leaseholdv1.TransferResponse{Kind: confirmed})
	}
	return false, err
}
