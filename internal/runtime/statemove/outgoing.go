package statemove

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
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
	if err := o.await(func() bool { return o.gather(record) }); err != nil {
		return err
	}
	o.progress()
	return nil
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

// stuck says why there was no progress.
func (o *Outgoing) stuck() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	fail := func(why string) error {
		return leasehold.Errorf(opSend, leasehold.ErrUnavailable, o.Addr, "no progress for %v: %s", o.Idle, why)
	}
	switch {
	case o.broken != nil:
		return leasehold.Errorf(opSend, leasehold.ErrUnavailable, o.Addr, "no progress for %v: there is no connection: %w", o.Idle, o.broken)
	case !o.accepted:
		return fail("the target has not answered")
	case len(o.kept) > 0:
		return fail("the target's application takes nothing in")
	}
	return fail("this side's application sends nothing")
}
