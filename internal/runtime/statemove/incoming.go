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

// An Incoming is the target's end of a transfer, from when it is expected until
// it is closed. Records is for one goroutine, the application's; the other
// methods may be called from any.
type Incoming struct {
	ticket protocol.Ticket
	from   secure.Identity // the source's; empty if nobody knows it
	server *Server
	begin  func() // called when the source has come for the first time

	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   *time.Timer // nil before it has begun

	mu        sync.Mutex
	news      news
	begun     bool
	origin    trace.SpanContext // the source's span; set when it has begun
	stream    uint64            // numbers the streams; the newest counts
	next      uint64            // the number of the chunk, or the end, that comes next
	queue     []*leaseholdv1.TransferChunk
	weight    int    // of queue
	taken     uint64 // the application has all chunks up to this
	sum       tally
	end       bool // all chunks have come, and are what was sent
	complete  bool // the application has taken them all
	confirmed bool
	refusal   error
}

// Context ends when the transfer has failed or was refused. Its cause says why.
func (in *Incoming) Context() context.Context { return in.ctx }

// Origin returns the span that the source is in, once it has come; an invalid one if it
// does not say.
func (in *Incoming) Origin() trace.SpanContext {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.origin
}

// Records are what the source's application has sent, in order. They wait for
// more until there is no more, and end with an error if the transfer fails. A
// record may be kept; it is a part of a chunk of up to 64 KiB, and keeps that in
// memory. They can be walked through once.
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
			in.drop()
		}
	}
}

// Complete reports whether all records have been walked through, with an error
// that says what is missing.
func (in *Incoming) Complete() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil {
		return in.refusal
	}
	if !in.complete {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "not all records have been read: %d chunks are left, and the end has come: %t", len(in.queue), in.end)
	}
	return nil
}

// Confirm tells the source that all of its state is here. From here on the
// source counts on us, so that only Close can still end the transfer. Confirm
// reports false if it has ended before.
func (in *Incoming) Confirm() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil {
		return false
	}
	in.confirmed = true
	in.quiet()
	in.news.spread()
	return true
}

// Refuse tells the source that its state is not wanted, and why. It ends the
// context. The first reason counts, and none does after Confirm.
func (in *Incoming) Refuse(why error) { in.fail(why, false) }

// fail is Refuse, and also of what has been confirmed if so told.
func (in *Incoming) fail(why error, confirmed bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refusal != nil || in.confirmed && !confirmed {
		return
	}
	in.refusal = why
	in.queue, in.weight = nil, 0
	in.quiet()
	in.cancel(why)
	in.news.spread()
}

// Close ends the transfer, confirmed or not, and forgets the ticket.
func (in *Incoming) Close(why error) {
	in.fail(why, true)
	in.server.forget(in.ticket)
}

// Release makes room for another transfer. It is called once by whoever was
// told that this one has begun, when there is nothing more to be done for it.
func (in *Incoming) Release() { <-in.server.slots }

// quiet ends the watch over progress: what is left to wait for is our own side.
func (in *Incoming) quiet() {
	if in.idle != nil {
		in.idle.Stop()
	}
}

func (in *Incoming) progress() {
	if !in.complete && in.refusal == nil {
		in.idle.Reset(in.server.Idle)
	}
}

func (in *Incoming) stuck() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	why := "the source sends nothing"
	switch {
	case in.complete:
		why = "this side's application has all records and is not done with them"
	case len(in.queue) > 0:
		why = "this side's application takes nothing in"
	}
	return leasehold.Errorf(opReceive, leasehold.ErrUnavailable, "", "no progress for %v: %s", in.server.Idle, why)
}

// head waits for a chunk; nil says that there are no more.
func (in *Incoming) head() (*leaseholdv1.TransferChunk, error) {
	for {
		chunk, changed := in.peek()
		if chunk != nil || changed == nil {
			return chunk, nil
		}
		if err := changed.await(in.ctx); err != nil {
			return nil, err
		}
	}
}

// peek returns the next chunk, or what to wait for, or nothing at the end.
func (in *Incoming) peek() (*leaseholdv1.TransferChunk, news) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case len(in.queue) > 0:
		return in.queue[0], nil
	case !in.end || in.refusal != nil: // a refusal ends the waiting
		return nil, in.news
	}
	in.complete = true
	in.idle.Reset(in.server.Idle) // the application must return
	return nil, nil
}

// drop takes note that the application has taken a chunk.
func (in *Incoming) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.queue) == 0 { // it has been refused meanwhile
		return
	}
	in.weight -= weight(in.queue[0])
	in.queue[0], in.queue = nil, in.queue[1:]
	in.taken++
	in.progress()
	in.news.spread()
}

// put takes what a stream brings. The error is the source's fault.
func (in *Incoming) put(stream uint64, r *leaseholdv1.TransferRequest) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if stream != in.stream || in.refusal != nil || in.confirmed {
		return nil // nobody listens to this one any more, or all has been said
	}
	switch kind := r.GetKind().(type) {
	case *leaseholdv1.TransferRequest_Chunk:
		return in.chunk(kind.Chunk)
	case *leaseholdv1.TransferRequest_End:
		return in.finish(kind.End)
	}
	return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "a message is neither a chunk nor the end")
}

func (in *Incoming) chunk(c *leaseholdv1.TransferChunk) error {
	if err := in.follows(c.GetNumber()); err != nil {
		return err
	}
	if err := checkChunk(c); err != nil {
		return err
	}
	if len(in.queue) > 0 && in.weight+weight(c) > Window {
		return leasehold.Errorf(opReceive, leasehold.ErrLimit, "", "more than %d bytes are under way", Window)
	}
	for record := range records(c) {
		in.sum.add(record)
	}
	in.next++
	in.queue = append(in.queue, c)
	in.weight += weight(c)
	in.progress()
	in.news.spread()
	return nil
}

func (in *Incoming) finish(e *leaseholdv1.TransferEnd) error {
	if err := in.follows(e.GetNumber()); err != nil {
		return err
	}
	if err := in.sum.check(e); err != nil {
		return err
	}
	in.next++
	in.end = true
	in.progress()
	in.news.spread()
	return nil
}

func (in *Incoming) follows(number uint64) error {
	if number != in.next || in.end {
		return leasehold.Errorf(opReceive, leasehold.ErrInvalid, "", "chunk %d has come, want %d", number, in.next)
	}
	return nil
}
