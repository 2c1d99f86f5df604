package statemove

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

const opSend = "send state"

// A Departure says what is sent where.
type Departure struct {
	Namespace leasehold.Namespace
	Ticket    protocol.Ticket
	Addr      string            // where the target takes state in
	Session   leasehold.Session // the target's

	// DialOptions come after our own, so that they prevail. They must say which
	// credentials to use.
	DialOptions []grpc.DialOption
	// Idle is after how long without progress the transfer fails.
	Idle time.Duration
}

// An Outgoing is the source's end of a transfer. Send, Settle and Finish are for
// one goroutine, the application's; the other methods may be called from any.
type Outgoing struct {
	Departure
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer
	linger *time.Timer    // while there is a batch
	ended  sync.WaitGroup // the goroutine that speaks to the target

	sum tally // belongs to whoever sends

	mu       sync.Mutex
	news     news
	batch    batch                          // what has been gathered
	overdue  bool                           // batch has waited for long enough
	kept     []*leaseholdv1.TransferRequest // what the target has not taken, in order
	first    uint64                         // the number of kept[0]; or of what comes next
	weight   int                            // of kept
	accepted bool
	finished bool  // kept ends with an end
	done     bool  // the target has confirmed
	broken   error // why there is no connection; nil while there is one
	records  uint64
	bytes    uint64
}

// Open begins a transfer. It does not wait for the target. When the context
// ends, or the transfer fails, so does [Outgoing.Context]. The target is told of the
// context's span.
func Open(ctx context.Context, d Departure) *Outgoing {
	o := &Outgoing{Departure: d, sum: newTally(), news: make(news), first: 1}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	o.idle = time.AfterFunc(d.Idle, func() { o.cancel(o.stuck()) })
	o.linger = time.AfterFunc(d.Idle, o.hurry)
	o.linger.Stop() // there is nothing yet
	o.ended.Go(o.run)
	return o
}

// Context ends when the transfer has failed or was closed. Its cause says why.
func (o *Outgoing) Context() context.Context { return o.ctx }

// Progress returns what has been sent so far.
func (o *Outgoing) Progress() (records, bytes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records, o.bytes
}

// Send sends a record, which it copies. It waits while as much is under way as
// may be, and fails if the transfer has.
func (o *Outgoing) Send(record []byte) error {
	if len(record) > MaxRecord {
		return leasehold.Errorf(opSend, leasehold.ErrLimit, o.Addr, "a record has %d bytes, at most %d are allowed: split it", len(record), MaxRecord)
	}
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	err := o.await(func() bool { return o.gather(record) })
	if err == nil {
		o.progress()
	}
	return err
}

// gather adds a record to the batch, and reports false if there is no room.
func (o *Outgoing) gather(record []byte) bool {
	if !o.batch.room(record) && !o.flush() {
		return false
	}
	if o.batch.empty() {
		o.linger.Reset(min(longestLinger, o.Idle/4))
	}
	o.batch.add(record)
	o.sum.add(record)
	o.records, o.bytes = o.sum.records, o.sum.bytes
	return true
}

// hurry sends a batch that has waited for long: the target takes a source that
// sends nothing for one that hangs.
func (o *Outgoing) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.overdue = !o.flush()
}

// Settle waits until the target's application has taken everything that was
// sent, or has at least begun if nothing was.
func (o *Outgoing) Settle() error {
	if err := o.await(o.flush); err != nil {
		return err
	}
	return o.await(func() bool { return o.accepted && len(o.kept) == 0 })
}

// Finish says that there is no more, and waits until the target has confirmed
// that it has everything.
func (o *Outgoing) Finish() error {
	if err := o.await(o.flush); err != nil {
		return err
	}
	o.mu.Lock()
	end := o.sum.end(o.first + uint64(len(o.kept)))
	o.kept = append(o.kept, &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_End{End: end}})
	o.finished = true
	o.news.spread()
	o.mu.Unlock()
	return o.await(func() bool { return o.done })
}

// Close ends the transfer, however far it is, and waits for what Open started.
func (o *Outgoing) Close() {
	o.cancel(leasehold.Errorf(opSend, leasehold.ErrClosed, o.Addr, "the transfer was closed"))
	o.ended.Wait()
	o.idle.Stop()
	o.linger.Stop()
}

// flush queues what has been gathered, and reports false if there is no room.
func (o *Outgoing) flush() bool {
	if o.batch.empty() {
		return true
	}
	weight := o.batch.weight()
	if len(o.kept) > 0 && o.weight+weight > Window {
		return false
	}
	chunk := &leaseholdv1.TransferChunk{Number: o.first + uint64(len(o.kept)), Data: o.batch.data, Sizes: o.batch.sizes}
	o.kept = append(o.kept, &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_Chunk{Chunk: chunk}})
	o.weight += weight
	o.batch, o.overdue = o.batch.next(), false
	o.linger.Stop()
	o.news.spread()
	return true
}

// await waits until something is so, or could be done. It is asked under the
// lock.
func (o *Outgoing) await(so func() bool) error {
	for {
		o.mu.Lock()
		ok, changed := so(), o.news
		o.mu.Unlock()
		if ok {
			return nil
		}
		if err := changed.await(o.ctx); err != nil {
			return err
		}
	}
}

func (o *Outgoing) progress() { o.idle.Reset(o.Idle) }

func (o *Outgoing) stuck() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	why := errors.New("this side's application sends nothing")
	switch {
	case o.broken != nil:
		why = fmt.Errorf("there is no connection: %w", o.broken)
	case !o.accepted:
		why = errors.New("the target has not answered")
	case len(o.kept) > 0:
		why = errors.New("the target's application takes nothing in")
	}
	return leasehold.Errorf(opSend, leasehold.ErrUnavailable, o.Addr, "no progress for %v: %w", o.Idle, why)
}

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
