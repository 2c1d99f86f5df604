package statemove

import (
	"context"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/secure"
)

const opReceive = "receive state"

// An Incoming is the target's end of a transfer, from the announcement by the leader to Close. Records is for
// one goroutine, the application's. The other methods are safe for concurrent use.
type Incoming struct {
	ticket protocol.Ticket
	from   secure.Identity // of the source; empty if unknown
	server *Server
	begin  func() // called when the first stream is accepted

	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer // nil before begin

	mu        sync.Mutex
	changed   notifier
	begun     bool
	origin    trace.SpanContext // the source's span; set with begun
	streams   uint64            // number of streams so far; the newest is current
	next      uint64            // number of the next chunk or end
	queue     []*leaseholdv1.TransferChunk
	weight    int    // of queue
	taken     uint64 // number of the last acknowledged chunk
	tally     tally
	end       bool // all chunks are received and their checksum is right
	complete  bool // the application has read all records
	confirmed bool
	refusal   error
}

// Context ends when the transfer fails or is refused. Its cause is the reason.
func (in *Incoming) Context() context.Context { return in.ctx }

// Origin returns the trace span of the source. It is invalid before begin, or if the source has no
// span.
func (in *Incoming) Origin() trace.SpanContext {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.origin
}

// Records returns the records of the source's application, in order. The iteration blocks for the next record, and
// ends with an error if the transfer fails. It can be run once. A record may be kept; it is part of a chunk of up to
// 64 KiB, which stays in memory with it.
func (in *Incoming) Records() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			chunk, err := in.head()
			if err != nil {
				yield(nil, err)
				return
			}
			if chunk == nil {
				return
			}
			for record := range records(chunk) {
				if !yield(record, nil) {
					return
				}
			}
			in.acknowledge()
		}
	}
}

// Complete returns an error unless the application has read all records.
func (in *Incoming) Complete() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil {
		return in.refusal
	}
	if !in.complete {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "transfer incomplete: %d chunks are unread, end received: %t", len(in.queue), in.end)
	}
	return nil
}

// Confirm sends the source the confirmation that the target has all of its state. The source relies on it: after
// Confirm only Close ends the transfer. Confirm reports false if the transfer has ended before.
func (in *Incoming) Confirm() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil {
		return false
	}
	in.confirmed = true
	in.stopIdleTimer()
	in.changed.broadcast()
	return true
}

// Refuse ends the transfer and its context, and sends the reason to the source. Only the first call has an effect,
// and none after Confirm.
func (in *Incoming) Refuse(why error) { in.fail(why, false) }

// fail is Refuse, also after Confirm if confirmed is true.
func (in *Incoming) fail(why error, confirmed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil || in.confirmed && !confirmed {
		return
	}
	in.refusal = why
	in.queue, in.weight = nil, 0
	in.stopIdleTimer()
	in.cancel(why)
	in.changed.broadcast()
}

// Close ends the transfer, confirmed or not, and removes its ticket.
func (in *Incoming) Close(why error) {
	in.fail(why, true)
	in.server.remove(in.ticket)
}

// Release frees the slot of the transfer. The recipient of the begin call of [Server.Expect] calls it once, when the
// import has ended.
func (in *Incoming) Release() { <-in.server.slots }

// stopIdleTimer ends the idle timeout: the source has nothing more to do.
func (in *Incoming) stopIdleTimer() {
	if in.idle != nil {
		in.idle.Stop()
	}
}

func (in *Incoming) progress() {
	if !in.complete && in.refusal == nil {
		in.idle.Reset(in.server.Idle)
	}
}

func (in *Incoming) idleError() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	reason := "the source sends nothing"
	switch {
	case in.complete:
		reason = "the importer of this side has read all records and does not return"
	case len(in.queue) > 0:
		reason = "the importer of this side reads no records"
	}
	return leasehold.Errorf(opReceive, leasehold.ErrUnavailable, "", "no progress for %v: %s", in.server.Idle, reason)
}

// head waits for the next chunk; nil at the end.
func (in *Incoming) head() (*leaseholdv1.TransferChunk, error) {
	for {
		chunk, changed := in.peek()
		if chunk != nil || changed == nil {
			return chunk, nil
		}
		if err := changed.wait(in.ctx); err != nil {
			return nil, err
		}
	}
}

// peek returns the next chunk, or a notifier to wait for, or neither at the end.
func (in *Incoming) peek() (*leaseholdv1.TransferChunk, notifier) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case len(in.queue) > 0:
		return in.queue[0], nil
	case !in.end || in.refusal != nil: // a refusal ends the context, and so the wait
		return nil, in.changed
	}
	in.complete = true
	in.idle.Reset(in.server.Idle) // for the return of the application
	return nil, nil
}

// acknowledge removes the first chunk, which the application has read.
func (in *Incoming) acknowledge() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == 0 { // refused meanwhile
		return
	}
	in.weight -= weight(in.queue[0])
	in.queue[0], in.queue = nil, in.queue[1:]
	in.taken++
	in.progress()
	in.changed.broadcast()
}

// put processes a message of a stream. An error means that the source violates the protocol.
func (in *Incoming) put(stream uint64, r *leaseholdv1.TransferRequest) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if stream != in.streams || in.refusal != nil || in.confirmed {
		return nil // a stale stream, or the transfer has ended
	}
	switch kind := r.GetKind().(type) {
	case *leaseholdv1.TransferRequest_Chunk:
		return in.chunk(kind.Chunk)
	case *leaseholdv1.TransferRequest_End:
		return in.finish(kind.End)
	}
	return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "message rejected: it is neither a chunk nor the end")
}

func (in *Incoming) chunk(c *leaseholdv1.TransferChunk) error {
	if err := in.checkNumber(c.GetNumber()); err != nil {
		return err
	}
	if err := checkChunk(c); err != nil {
		return err
	}
	if len(in.queue) > 0 && in.weight+weight(c) > Window {
		return leasehold.Errorf(opReceive, leasehold.ErrLimit, "", "chunk rejected: more than %d bytes are unacknowledged", Window)
	}
	for record := range records(c) {
		in.tally.add(record)
	}
	in.next++
	in.queue = append(in.queue, c)
	in.weight += weight(c)
	in.progress()
	in.changed.broadcast()
	return nil
}

func (in *Incoming) finish(e *leaseholdv1.TransferEnd) error {
	if err := in.checkNumber(e.GetNumber()); err != nil {
		return err
	}
	if err := in.tally.check(e); err != nil {
		return err
	}
	in.next++
	in.end = true
	in.progress()
	in.changed.broadcast()
	return nil
}

func (in *Incoming) checkNumber(number uint64) error {
	if number != in.next || in.end {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "chunk %d received, want %d", number, in.next)
	}
	return nil
}
