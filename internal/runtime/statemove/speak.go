package statemove

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

type client = grpc.BidiStreamingClient[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]

// run speaks to the target, over one stream after the other, until the target
// has decided or the transfer has ended.
func (o *Outgoing) run() {
	conn, err := grpc.NewClient("passthrough:///"+o.Addr, append(dialOptions(), o.DialOptions...)...)
	if err != nil {
		o.cancel(leasehold.Errorf(opSend, leasehold.ErrInvalid, o.Addr, "the target cannot be dialled: %w", err))
		return
	}
	defer conn.Close() //nolint:errcheck // nothing is left to be said over it
	for wait := leastBackoff; ; wait = min(2*wait, mostBackoff) {
		failpoint.Here("mover/before-connecting")
		spoke, err := o.converse(leaseholdv1.NewMoverServiceClient(conn))
		if err == nil || o.ctx.Err() != nil {
			return
		}
		if final(err) {
			o.cancel(leasehold.Errorf(opSend, leasehold.KindOf(wire.ToError(err)), o.Addr, "the target refuses: %w", wire.ToError(err)))
			return
		}
		if spoke {
			wait = leastBackoff
		}
		o.mu.Lock()
		o.broken = err
		o.mu.Unlock()
		select {
		case <-o.ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// A verdict is the target's own word that the transfer has failed.
type verdict struct{ error }

func (v verdict) Unwrap() error { return v.error }

// final reports whether there is no use in dialling again. A target that does not
// know the ticket may not have heard of the move yet: its manager may be out of
// its reach for longer than it lets us wait.
func final(err error) bool {
	if v := (verdict{}); errors.As(err, &v) {
		return true
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// converse speaks over one stream. It returns nil when the target has
// confirmed; otherwise it also reports whether the target has let us in.
func (o *Outgoing) converse(service leaseholdv1.MoverServiceClient) (spoke bool, err error) {
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	stream, next, err := o.open(ctx, service)
	if err != nil {
		return false, err
	}
	listened := make(chan error, 1)
	o.ended.Go(func() {
		defer cancel() // the speaker waits for news, or for room on the stream
		listened <- o.listen(stream)
	})
	o.speak(ctx, stream, next)
	cancel()
	return true, <-listened
}

// open opens a stream and shakes hands. It returns the number to go on with.
func (o *Outgoing) open(ctx context.Context, service leaseholdv1.MoverServiceClient) (stream client, next uint64, err error) {
	ctx, err = withOpening(ctx, &leaseholdv1.TransferOpening{
		Version: wire.Version, Namespace: string(o.Namespace), Ticket: o.Ticket[:], Session: o.Session[:],
	})
	if err != nil {
		return nil, 0, verdict{err}
	}
	if stream, err = service.Transfer(withOrigin(ctx)); err != nil {
		return nil, 0, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return nil, 0, err
	}
	switch kind := answer.GetKind().(type) {
	case *leaseholdv1.TransferResponse_Refused:
		return nil, 0, verdict{wire.ToRefusal(kind.Refused)}
	case *leaseholdv1.TransferResponse_Accepted:
		if err := wire.CheckVersion(kind.Accepted.GetVersion()); err != nil {
			return nil, 0, verdict{err}
		}
		return stream, kind.Accepted.GetNext(), o.resume(kind.Accepted.GetNext())
	}
	return nil, 0, verdict{o.nonsense("it has not answered the opening")}
}

// resume goes on where the target wants us to, which has everything before that.
func (o *Outgoing) resume(next uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if next < o.first || next > o.first+uint64(len(o.kept)) {
		return verdict{o.nonsense("it wants to go on with a chunk that it has taken, or that was never sent")}
	}
	if !o.accepted { // again is no progress: what breaks the stream may last
		o.progress()
	}
	o.accepted, o.broken = true, nil
	o.news.spread()
	return nil
}

// speak sends what there is from next on, until the stream ends.
func (o *Outgoing) speak(ctx context.Context, stream client, next uint64) {
	for {
		o.mu.Lock()
		var message *leaseholdv1.TransferRequest
		if i := next - o.first; i < uint64(len(o.kept)) {
			message = o.kept[i]
		}
		changed := o.news
		o.mu.Unlock()
		if message == nil {
			if changed.await(ctx) != nil {
				return
			}
			continue
		}
		if failpoint.Fail("mover/before-chunk") != nil {
			return
		}
		if stream.Send(message) != nil {
			<-ctx.Done() // whoever listens hears why
			return
		}
		next++
	}
}

// listen hears what the target says, until it has confirmed or the stream ends.
func (o *Outgoing) listen(stream client) error {
	for {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		switch kind := answer.GetKind().(type) {
		case *leaseholdv1.TransferResponse_Taken:
			if err := o.taken(kind.Taken.GetNumber()); err != nil {
				return err
			}
		case *leaseholdv1.TransferResponse_Confirmed:
			return o.confirmed()
		case *leaseholdv1.TransferResponse_Refused:
			return verdict{wire.ToRefusal(kind.Refused)}
		}
	}
}

// taken forgets what the target's application has taken.
func (o *Outgoing) taken(number uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number >= o.first+uint64(len(o.kept)) {
		return verdict{o.nonsense("it says that it has taken a chunk that was never sent")}
	}
	for ; o.first <= number; o.first++ {
		o.weight -= weight(o.kept[0].GetChunk())
		o.kept[0], o.kept = nil, o.kept[1:]
	}
	if o.overdue {
		o.flush()
	}
	o.progress()
	o.news.spread()
	return nil
}

func (o *Outgoing) confirmed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.finished {
		return verdict{o.nonsense("it has confirmed before it was sent the end")}
	}
	o.done = true
	o.news.spread()
	return nil
}

func (o *Outgoing) nonsense(what string) error {
	return leasehold.Errorf(opSend, leasehold.ErrInternal, o.Addr, "the target makes no sense: %s", what)
}
