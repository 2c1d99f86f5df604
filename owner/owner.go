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
	"github.com/leasehold-dev/leasehold/internal/runtime/plural"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An Owner is one membership of this process in a namespace, from Join to
// Close. It is safe for concurrent use.
type Owner struct {
	// Fields that Check reads come first.
	holding  atomic.Pointer[holding]
	clock    *clock.Clock
	detector *clock.Detector
	meter    *loadmeter.Meter
	awaiting atomic.Int64 // calls of Await that wait
	contact  atomic.Int64 // instant of the last reply of a leader
	promises promises

	cfg       Config
	id        leasehold.Session
	machine   *session
	driver    *driver.Driver[machine.Event, machine.Action]
	link      *managerconn.Link[leaseholdv1.HoldRequest, leaseholdv1.HoldResponse]
	callbacks *callbacks
	moves     *migration // nil without a Mover
	calls     *calls     // of Each
	notes     notes
	metrics   *metrics // nil without Config.Metrics
	replies   replyStats
	recall    trace.Span // of recalled leases that no request has released yet; nil if there are none
	loads     loads
	warnings  costWarnings
	responses responses
	outage    *managerconn.Outage
	supervision
	// stopPredecessorCheck ends the goroutine that awaits the end of the predecessor; nil if there is none.
	stopPredecessorCheck context.CancelFunc

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup // the driver, the sleep detector, the check of a predecessor

	joined         chan struct{} // closed when the leader has accepted this owner
	refused        chan error    // buffers the refusal that ends Join
	parted         chan struct{} // closed when no lease is left that can be moved
	left           chan struct{} // closed when the session has ended
	unacknowledged bool          // the session has ended without a leader's ack; written before left is closed
	closing        atomic.Bool
	done           chan struct{} // closed when Close is complete
	failure        error         // of Close; written before done is closed
}

// Check returns the lease that covers key. It reports false if this process holds none
// at the instant of the call (CheckLeaseNow of Centrifuge). It never waits and never
// requests a lease: the manager assigns ranges.
//
// To ensure that the key was held throughout an operation, call [Owner.Held] at its end.
//
// A successful check counts as load, unless Config.Load is LoadReported.
//
// Check takes no lock and does not allocate. It reads the clock, which is most
// of its cost, and searches an index.
func (o *Owner) Check(key leasehold.Key) (Lease, bool) {
	l, now := o.find(key)
	if l == nil || l.Generation == 0 {
		return Lease{}, false
	}
	o.meter.Count(now, key)
	return Lease{Lease: *l, Key: key}, true
}

// Held reports whether the lease that Check returned has been held on its
// key without a gap since (CheckLeaseContinuous of Centrifuge): no other owner
// has acted on the key. It is false while the lease is suspended or stopped by a move, and true again
// if it is resumed or the move fails. After the lease has ended it is always false. It costs the same as Check.
func (o *Owner) Held(lease Lease) bool {
	l, _ := o.find(lease.Key)
	return l != nil && l.Generation == lease.Generation && l.Generation != 0
}

// find returns the area around key, nil if no lease is held, and the time.
//
// The order matters. The holding is read first: if it has not expired when
// the clock is read afterwards, it had not expired before. The sleep detector is read
// last: if it has detected no sleep then, there was none before.
func (o *Owner) find(key leasehold.Key) (*leasehold.Lease, mono.Instant) {
	h := o.holding.Load()
	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil, now
	}
	return h.areas.find(key), now
}

// Leases returns a copy of all leases that are held now, sorted by range, without suspended
// ones.
func (o *Owner) Leases() []leasehold.Lease {
	h := o.holding.Load()
	now := o.clock.Now()
	if now >= h.until || o.detector.Epoch(now) != h.epoch {
		return nil
	}
	return slices.Clone(h.areas.held)
}

// SuspendedLeases returns a copy of all leases that are suspended now, sorted by range.
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

// Namespace returns the owner's namespace.
func (o *Owner) Namespace() leasehold.Namespace { return o.cfg.Namespace }

// Session returns the session of this run of the owner.
func (o *Owner) Session() leasehold.Session { return o.id }

// Done returns a channel that is closed when Close is complete: the owner holds no lease
// and receives none.
func (o *Owner) Done() <-chan struct{} { return o.done }

// Err returns nil until Done is closed, and then [leasehold.ErrClosed]: an owner ends only by
// Close.
func (o *Owner) Err() error {
	select {
	case <-o.done:
		return leasehold.Errorf("owner", leasehold.ErrClosed, string(o.cfg.Namespace), "the owner is closed")
	default:
		return nil
	}
}

// Close releases all leases, waits for the leader's ack, and
// ends all goroutines of the owner. It waits for the callbacks, which receive the end of
// all leases, so they must not call it.
//
// With a Mover it first moves all ranges to other owners, with their state.
// Checks succeed until each range has moved, and the server must keep
// serving until Close has returned. Ranges that cannot be moved, because no other
// owner can take them or because the context ends soon, are released
// without their state; then Close returns an error. Without a Mover,
// checks fail at once.
//
// If the context ends first, Close ends the owner anyway and returns
// [leasehold.ErrUnavailable]: the keys have no owner until the leases expire. Without a
// reachable leader it returns when the leases have expired. A second call waits for the first
// and returns the same error.
func (o *Owner) Close(ctx context.Context) error {
	if o.closing.CompareAndSwap(false, true) {
		_, span := o.spanOf(ctx, "leasehold.leave")
		o.failure = o.shutDown(ctx)
		endSpan(span, o.failure)
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
	err := o.awaitLeft(ctx)
	failpoint.Here("owner/left")
	select {
	case <-o.left:
		o.unregister() // otherwise the supervisor reports the end of the process
	default:
	}
	o.cancel()
	o.running.Wait()
	o.endRecallSpan() // the driver has ended
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

// part moves all ranges to other owners. It reserves a tenth of the context's time, at most a
// second, for leaving. It returns an error if ranges are left.
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
		why = "the move timed out"
	}
	status := o.Status()
	left := status.Held + status.Suspended
	if status.Suspended > 0 {
		why = "no leader replies"
	}
	if left == 0 {
		return nil
	}
	o.notes.logger.Warn("state is lost: ranges could not be moved before close", "ranges", left, "why", why)
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace), "the state of %s is lost: %s", plural.Count(left, "range"), why)
}

// awaitLeft waits for the leader's ack. When it returns, also with an error, the machine has
// released all leases.
func (o *Owner) awaitLeft(ctx context.Context) error {
	_ = o.driver.Do(o.ctx, noStep) // runs after Leave, which is as urgent; cannot fail before o.cancel
	select {
	case <-o.left:
		return o.leaveError()
	default:
	}
	select {
	case <-o.left:
		return o.leaveError()
	case <-ctx.Done():
		return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace),
			"no leader has acknowledged the release of the leases (%s); they will expire: %w", o.responses.String(), ctx.Err())
	}
}

// leaveError returns an error if the leases have expired without an ack.
func (o *Owner) leaveError() error {
	if !o.unacknowledged {
		return nil
	}
	return leasehold.Errorf(opClose, leasehold.ErrUnavailable, string(o.cfg.Namespace),
		"no leader has acknowledged the release of the leases before they expired (%s)", o.responses.String())
}
