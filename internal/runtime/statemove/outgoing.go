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

// A Departure configures an outgoing transfer.
type Departure struct {
	Namespace leasehold.Namespace
	Ticket    protocol.Ticket
	Addr      string            // of the target's Server
	Session   leasehold.Session // of the target

	// DialOptions follow the default options and override them. They must contain transport
	// credentials.
	DialOptions []grpc.DialOption
	// Idle is the timeout without progress.
	Idle time.Duration
}

// An Outgoing is the source's end of a transfer. Send, Settle and Finish are for one goroutine, the application's.
// The other methods are safe for concurrent use.
type Outgoing struct {
	Departure
	ctx     context.Context
	cancel  context.CancelCauseFunc
	idle    *time.Timer
	linger  *time.Timer // runs while there is a batch
	running sync.WaitGroup

	tally tally // of the goroutine that sends

	mu       sync.Mutex
	changed  notifier
	batch    batch
	lingered bool                           // batch has waited for maxLinger
	unacked  []*leaseholdv1.TransferRequest // in order
	first    uint64                         // number of unacked[0], or of the next request
	weight   int                            // of unacked
	accepted bool
	finished bool  // the last request is the end
	done     bool  // the target has confirmed
	broken   error // of the last stream; nil while there is one
	records  uint64
	bytes    uint64
}

// Open begins a transfer without waiting for the target. [Outgoing.Context] ends when the given context ends or the
// transfer fails. The target receives the trace span of the context.
func Open(ctx context.Context, d Departure) *Outgoing {
	o := &Outgoing{Departure: d, tally: newTally(), changed: make(notifier), first: 1}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	o.idle = time.AfterFunc(d.Idle, func() { o.cancel(o.idleError()) })
	o.linger = time.AfterFunc(d.Idle, o.flushLingering)
	o.linger.Stop() // the batch is empty
	o.running.Go(o.run)
	return o
}

// Context ends when the transfer fails or is closed. Its cause is the reason.
func (o *Outgoing) Context() context.Context { return o.ctx }

// Progress returns the numbers of records and bytes sent so far.
func (o *Outgoing) Progress() (records, bytes uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records, o.bytes
}

// Send sends a copy of a record. It blocks while the window is full, and fails if the transfer has failed.
func (o *Outgoing) Send(record []byte) error {
	if len(record) > MaxRecord {
		return leasehold.Errorf(opSend, leasehold.ErrLimit, o.Addr, "record of %d bytes rejected: the limit is %d; split it", len(record), MaxRecord)
	}
	if o.ctx.Err() != nil {
		return context.Cause(o.ctx)
	}
	err := o.await(func() bool { return o.addToBatch(record) })
	if err == nil {
		o.progress()
	}
	return err
}

// addToBatch adds a record to the batch. It reports false if batch and window are full. o.mu is held.
func (o *Outgoing) addToBatch(record []byte) bool {
	if !o.batch.room(record) && !o.flush() {
		return false
	}
	if o.batch.empty() {
		o.linger.Reset(min(maxLinger, o.Idle/4))
	}
	o.batch.add(record)
	o.tally.add(record)
	o.records, o.bytes = o.tally.records, o.tally.bytes
	return true
}

// flushLingering sends a batch that has waited for maxLinger, before the target's idle timeout.
func (o *Outgoing) flushLingering() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lingered = !o.flush()
}

// Settle waits until the target has acknowledged all records, or has accepted the transfer if there are none.
func (o *Outgoing) Settle() error {
	if err := o.await(o.flush); err != nil {
		return err
	}
	return o.await(func() bool { return o.accepted && len(o.unacked) == 0 })
}

// Finish sends the end, with count and checksum of the records, and waits for the target's confirmation.
func (o *Outgoing) Finish() error {
	if err := o.await(o.flush); err != nil {
		return err
	}
	o.mu.Lock()
	end := o.tally.end(o.first + uint64(len(o.unacked)))
	o.unacked = append(o.unacked, &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_End{End: end}})
	o.finished = true
	o.changed.broadcast()
	o.mu.Unlock()
	return o.await(func() bool { return o.done })
}

// Close ends the transfer in any state, and waits for its goroutines.
func (o *Outgoing) Close() {
	o.cancel(leasehold.Errorf(opSend, leasehold.ErrClosed, o.Addr, "the transfer was closed"))
	o.running.Wait()
	o.idle.Stop()
	o.linger.Stop()
}

// flush queues the batch as a chunk. It reports false if the window is full. o.mu is held.
func (o *Outgoing) flush() bool {
	if o.batch.empty() {
		return true
	}
	weight := o.batch.weight()
	if len(o.unacked) > 0 && o.weight+weight > Window {
		return false
	}
	chunk := &leaseholdv1.TransferChunk{Number: o.first + uint64(len(o.unacked)), Data: o.batch.data, Sizes: o.batch.sizes}
	o.unacked = append(o.unacked, &leaseholdv1.TransferRequest{Kind: &leaseholdv1.TransferRequest_Chunk{Chunk: chunk}})
	o.weight += weight
	o.batch, o.lingered = o.batch.next(), false
	o.linger.Stop()
	o.changed.broadcast()
	return true
}

// await waits until a condition holds. condition runs with o.mu held, and may act.
func (o *Outgoing) await(condition func() bool) error {
	for {
		o.mu.Lock()
		ok, changed := condition(), o.changed
		o.mu.Unlock()
		if ok {
			return nil
		}
		if err := changed.wait(o.ctx); err != nil {
			return err
		}
	}
}

func (o *Outgoing) progress() { o.idle.Reset(o.Idle) }

func (o *Outgoing) idleError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	reason := errors.New("the exporter of this side sends no records")
	switch {
	case o.broken != nil:
		reason = fmt.Errorf("no connection: %w", o.broken)
	case !o.accepted:
		reason = errors.New("the target has not replied")
	case len(o.unacked) > 0:
		reason = errors.New("the importer of the target reads no records")
	}
	return leasehold.Errorf(opSend, leasehold.ErrUnavailable, o.Addr, "no progress for %v: %w", o.Idle, reason)
}

type client = grpc.BidiStreamingClient[leaseholdv1.TransferRequest, leaseholdv1.TransferResponse]

// run runs one stream after the other, until the target has confirmed or refused or the transfer has ended.
func (o *Outgoing) run() {
	conn, err := grpc.NewClient("passthrough:///"+o.Addr, append(dialOptions(), o.DialOptions...)...)
	if err != nil {
		o.cancel(leasehold.Errorf(opSend, leasehold.ErrInvalid, o.Addr, "invalid target: %w", err))
		return
	}
	defer conn.Close() //nolint:errcheck // it is unused
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		failpoint.Here("mover/before-connecting")
		accepted, err := o.runStream(leaseholdv1.NewMoverServiceClient(conn))
		if err == nil || o.ctx.Err() != nil {
			return
		}
		if isFinal(err) {
			o.cancel(leasehold.Errorf(opSend, leasehold.KindOf(wire.ToError(err)), o.Addr, "the target refuses the transfer: %w", wire.ToError(err)))
			return
		}
		if accepted {
			backoff = minBackoff
		}
		o.mu.Lock()
		o.broken = err
		o.mu.Unlock()
		select {
		case <-o.ctx.Done():
			return
		case <-time.After(backoff):
		}
	}
}

// A finalError is a refusal or protocol violation of the target: a retry cannot succeed.
type finalError struct{ error }

func (v finalError) Unwrap() error { return v.error }

// isFinal reports whether a retry cannot succeed. An unknown ticket is not final: the target may be without
// contact to the leader for longer than ticketWait, and receive the announcement later.
func isFinal(err error) bool {
	if v := (finalError{}); errors.As(err, &v) {
		return true
	}
	switch status.Code(err) {
	case codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition, codes.Unimplemented:
		return true
	default:
		return false
	}
}

// runStream runs one stream. It returns a nil error after the target's confirmation. accepted: the target
// has accepted the stream.
func (o *Outgoing) runStream(service leaseholdv1.MoverServiceClient) (accepted bool, err error) {
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	stream, next, err := o.open(ctx, service)
	if err != nil {
		return false, err
	}
	received := make(chan error, 1)
	o.running.Go(func() {
		defer cancel() // ends sendChunks
		received <- o.receiveAcks(stream)
	})
	o.sendChunks(ctx, stream, next)
	cancel()
	return true, <-received
}

// open opens a stream and waits for its acceptance. It returns the number of the next chunk to send.
func (o *Outgoing) open(ctx context.Context, service leaseholdv1.MoverServiceClient) (stream client, next uint64, err error) {
	ctx, err = withOpening(ctx, &leaseholdv1.TransferOpening{
		Version: wire.Version, Namespace: string(o.Namespace), Ticket: o.Ticket[:], Session: o.Session[:],
	})
	if err != nil {
		return nil, 0, finalError{err}
	}
	if stream, err = service.Transfer(withOrigin(ctx)); err != nil {
		return nil, 0, err
	}
	reply, err := stream.Recv()
	if err != nil {
		return nil, 0, err
	}
	switch kind := reply.GetKind().(type) {
	case *leaseholdv1.TransferResponse_Refused:
		return nil, 0, finalError{wire.ToRefusal(kind.Refused)}
	case *leaseholdv1.TransferResponse_Accepted:
		if err := wire.CheckVersion(kind.Accepted.GetVersion()); err != nil {
			return nil, 0, finalError{err}
		}
		return stream, kind.Accepted.GetNext(), o.resumeAt(kind.Accepted.GetNext())
	}
	return nil, 0, finalError{o.protocolError("its first reply is neither an acceptance nor a refusal")}
}

// resumeAt resumes at the chunk that the target requests. The target has all chunks before it.
func (o *Outgoing) resumeAt(next uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if next < o.first || next > o.first+uint64(len(o.unacked)) {
		return finalError{o.protocolError("it requests a chunk that it has acknowledged or that was not sent")}
	}
	if !o.accepted { // a reconnect is no progress: streams may break again and again
		o.progress()
	}
	o.accepted, o.broken = true, nil
	o.changed.broadcast()
	return nil
}

// sendChunks sends the requests from a number on, until the stream or its context ends.
func (o *Outgoing) sendChunks(ctx context.Context, stream client, next uint64) {
	for {
		o.mu.Lock()
		var message *leaseholdv1.TransferRequest
		if i := next - o.first; i < uint64(len(o.unacked)) {
			message = o.unacked[i]
		}
		changed := o.changed
		o.mu.Unlock()
		if message == nil {
			if changed.wait(ctx) != nil {
				return
			}
			continue
		}
		if failpoint.Fail("mover/before-chunk") != nil {
			return
		}
		if stream.Send(message) != nil {
			<-ctx.Done() // receiveAcks returns the reason
			return
		}
		next++
	}
}

// receiveAcks processes replies until the confirmation, a refusal or the end of the stream.
func (o *Outgoing) receiveAcks(stream client) error {
	for {
		reply, err := stream.Recv()
		if err != nil {
			return err
		}
		switch kind := reply.GetKind().(type) {
		case *leaseholdv1.TransferResponse_Taken:
			if err := o.taken(kind.Taken.GetNumber()); err != nil {
				return err
			}
		case *leaseholdv1.TransferResponse_Confirmed:
			return o.confirmed()
		case *leaseholdv1.TransferResponse_Refused:
			return finalError{wire.ToRefusal(kind.Refused)}
		}
	}
}

func (o *Outgoing) taken(number uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number >= o.first+uint64(len(o.unacked)) {
		return finalError{o.protocolError("it acknowledges a chunk that was not sent")}
	}
	for ; o.first <= number; o.first++ {
		o.weight -= weight(o.unacked[0].GetChunk())
		o.unacked[0], o.unacked = nil, o.unacked[1:]
	}
	if o.lingered {
		o.flush()
	}
	o.progress()
	o.changed.broadcast()
	return nil
}

func (o *Outgoing) confirmed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.finished {
		return finalError{o.protocolError("it confirms before the end was sent")}
	}
	o.done = true
	o.changed.broadcast()
	return nil
}

func (o *Outgoing) protocolError(violation string) error {
	return leasehold.Errorf(opSend, leasehold.ErrInternal, o.Addr, "the target violates the protocol: %s", violation)
}
