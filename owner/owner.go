package owner

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/clock"
	"github.com/leasehold-dev/leasehold/internal/runtime/driver"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/loadmeter"
	"github.com/leasehold-dev/leasehold/internal/runtime/managerconn"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An Owner is one membership of this process in a namespace, from Join to
// Close. Its methods may be called from many goroutines at once.
type Owner struct {
	// What checks read comes first.
	holding  atomic.Pointer[holding]
	clock    *clock.Clock
	detector *clock.Detector
	meter    *loadmeter.Meter
	awaiting atomic.Int64 // those who wait in Await
	contact  atomic.Int64 // the instant at which a leader last answered
	promises promises

	cfg       Config
	id        leasehold.Session
	machine   *session
	driver    *driver.Driver[machine.Event, machine.Action]
	link      *managerconn.Link[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	callbacks *callbacks
	moves     *migration // nil without a Mover
	notes     notes
	metrics   *metrics // nil if nobody asks for them
	heard     heard
	recall    trace.Span // of leases that the leader has not been told of; nil if there are none
	loads     loads
	nonsense  complaints
	hearsay   hearsay
	unsettled context.CancelFunc // ends the search for our predecessor; nil if there is none

	ctx     context.Context // ends when the owner does
	cancel  context.CancelFunc
	running sync.WaitGroup // the driver, the detector, the search for a predecessor

	joined  chan struct{} // closed when the leader has accepted us
	refused chan error    // gets why it never will
	parted  chan struct{} // closed when there is nothing to move away any more
	left    chan struct{} // closed when the leader has said goodbye, or unheard
	unheard bool          // no leader has, in all the time in which it would matter; written before left is closed
	closing atomic.Bool
	done    chan struct{} // closed when Close is through
	failure error         // what Close returns; set before done is closed
}

// Check returns the lease that covers key, and whether this process holds one
// now (CheckLeaseNow of Centrifuge). It never waits and never asks for a lease:
// the manager decides who owns what.
//
// The answer is about the moment of the call. To know that the key was held
// throughout an operation, ask [Owner.Held] at its end.
//
// A check that succeeds counts as work, unless Config.Load says otherwise.
//
// Check takes no lock and does not allocate. It reads the clock, which is most
// of what it costs, and searches an index.
func (o *Owner) Check(key leasehold.Key) (Lease, bool) {
	l, now := o.find(key)
	if l == nil || l.Generation == 0 {
		return Lease{}, false
	}
	o.meter.Count(now, key)
	return Lease{Lease: *l, Key: key}, true
}

// Held reports whether the lease, as Check returned it, has been held on its
// key without a gap ever since (CheckLeaseContinuous of Centrifuge): no other owner
// has acted on the key. It is false while the lease is suspended, and true again if it
// is resumed. Once the lease has ended it stays false. It costs what Check costs.
func (o *Owner) Held(lease Lease) bool {
	l, _ := o.find(lease.Key)
	return l != nil && l.Generation == lease.Generation && l.Generation != 0
}

// find returns the area around key, nil if nothing is held, and the time.
//
// The order matters. What is held is read first: if its time has not come when
// the clock is read after that, it had not come before. The detector is asked
// last: if it has noticed no sleep until then, there was none before.
func (o *Owner) find(key leasehold.Key) (*leasehold.Lease, mono.Instant) {
	h := o.holding.Load()
	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil, now
	}
	return h.areas.find(key), now
}

// Leases returns all leases that are held now, sorted by range; suspended ones are not
// among them. It copies them.
func (o *Owner) Leases() []leasehold.Lease {
	h := o.holding.Load()
	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil
	}
	return slices.Clone(h.areas.held)
}

// SuspendedLeases returns all leases that are suspended now, sorted by range, as Leases
// does of those that are held. It copies them.
func (o *Owner) SuspendedLeases() []leasehold.Lease {
	h := o.holding.Load()
	now := o.clock.Now()
	if now < h.until || o.detector.Epoch(now) != h.epoch {
		return nil
	}
	return slices.Clone(h.areas.held)
}

// Name returns the owner's name in its namespace.
func (o *Owner) Name() leasehold.OwnerID { return o.cfg.Name }

// Namespace returns the namespace that was joined.
func (o *Owner) Namespace() leasehold.Namespace { return o.cfg.Namespace }

// Session returns what tells this run of the owner from others of its name.
func (o *Owner) Session() leasehold.Session { return o.id }

// Done returns a channel that is closed when the owner has been closed: it holds nothing
// and never will again.
func (o *Owner) Done() <-chan struct{} { return o.done }

// Err returns nil until Done is closed, and then [leasehold.ErrClosed]: an owner ends only by
// Close.
func (o *Owner) Err() error {
	select {
	case <-o.done:
		return leasehold.Errorf("owner", leasehold.ErrClosed, string(o.cfg.Namespace), "it was closed")
	default:
		return nil
	}
}

// Close gives all leases back, waits until the leader has said goodbye, and
// ends everything that Join started. It waits for the callbacks to learn that
// all is over, so they must not call it.
//
// With a Mover it first has all ranges moved to other owners, with their state.
// Checks go on succeeding until each range has moved, and the server must go on
// serving until Close has returned. Ranges that cannot be moved, because no other
// owner can take them or not before the context is nearly over, are given back
// without their state; then Close returns an error that says so. Without a Mover,
// no check succeeds from the beginning on.
//
// If the context ends first, Close ends everything all the same and returns
// [leasehold.ErrUnavailable]: the keys then wait until the leases would have expired. It does not wait for
// longer than that for a leader that cannot be reached. A second call waits for the first
// and returns the same.
func (o *Owner) Close(ctx context.Context) error {
	if o.closing.CompareAndSwap(false, true) {
		_, span := o.spanOf(ctx, "leasehold.leave")
		o.failure = o.shutDown(ctx)
		concluded(span, o.failure)
		o.metrics.close(o)
		close(o.done)
	}
	select {
	case <-o.done:
		return o.failure
	default:
	}
	select {
	case <-o.done:
		return o.failure
	case <-ctx.Done():
		return &leasehold.Error{Op: opClose, Kind: leasehold.ErrUnavailable, Subject: string(o.cfg.Namespace), Err: ctx.Err()}
	}
}

const opClose = "close"

func (o *Owner) shutDown(ctx context.Context) error {
	failpoint.Here("owner/before-parting")
	lost := o.part(ctx)
	failpoint.Here("owner/before-leaving")
	o.driver.PostUrgent(o.ctx, machine.Leave{})
	err := o.awaitGoodbye(ctx)
	failpoint.Here("owner/left")
	o.cancel()
	o.running.Wait()
	o.tellRecall() // nothing is carried out any more
	o.link.Close()
	if o.moves != nil {
		o.moves.close()
		if slow := o.moves.await(ctx); err == nil {
			err = slow
		}
	}
	if slow := o.callbacks.stop(ctx); err == nil {
		err = slow
	}
	if lost != nil && err != nil {
		return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace), "%w; and %w", err, lost)
	}
	if err == nil {
		err = lost
	}
	return err
}

// part has everything moved away, and leaves some of the context's time for the
// goodbye: a tenth, but not more than a second. It reports what could not be
// moved.
func (o *Owner) part(ctx context.Context) error {
	if o.moves == nil || ctx.Err() != nil {
		return nil
	}
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-min(time.Second, time.Until(end)/10)))
		defer cancel()
	}
	o.moves.part()
	o.driver.PostUrgent(o.ctx, machine.Part{})
	why := "no other owner can take it"
	select {
	case <-o.parted:
	case <-ctx.Done():
		why = "there was no time to move it"
	}
	status := o.Status()
	left := status.Held + status.Suspended
	if status.Suspended > 0 {
		why = "no leader answers"
	}
	if left == 0 {
		return nil
	}
	o.notes.logger.Warn("state is lost with this owner", "ranges", left, "why", why)
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace), "the state of %d ranges is lost: %s", left, why)
}

// awaitGoodbye waits until the leader knows that we are gone. Whatever becomes
// of that, when it returns the machine has let go of everything.
func (o *Owner) awaitGoodbye(ctx context.Context) error {
	_ = o.driver.Do(o.ctx, nothing) // behind Leave, which is as urgent; it cannot fail before we cancel
	select {
	case <-o.left:
		return o.goodbye()
	default:
	}
	select {
	case <-o.left:
		return o.goodbye()
	case <-ctx.Done():
		return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace),
			"no leader has confirmed that the leases are back (%s); they will run out: %w", o.hearsay.String(), ctx.Err())
	}
}

// goodbye is what is wrong with how we left.
func (o *Owner) goodbye() error {
	if !o.unheard {
		return nil
	}
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace),
		"no leader has confirmed that the leases are back, in as long as they last (%s)", o.hearsay.String())
}
