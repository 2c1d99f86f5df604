package owner

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/statemove"
	"github.com/leasehold-dev/leasehold/secure"
)

// An Export is a range whose state [Mover.Export] sends. Its methods are for one
// goroutine at a time.
type Export struct {
	departure *departure
	out       *statemove.Outgoing
	copied    func()
	stopped   bool
}

// Range returns the keys whose state is to be sent.
func (e *Export) Range() leasehold.Range { return e.departure.Range }

// Generation returns the generation under which a key of the range is held here.
// State that is stamped with a lower one is from an earlier tenure: others may
// have acted since, and it must not be sent.
func (e *Export) Generation(key leasehold.Key) leasehold.Generation {
	leases := e.departure.leases
	i, found := slices.BinarySearchFunc(leases, key, func(l leasehold.Lease, key leasehold.Key) int { return cmp.Compare(l.Range.Start, key) })
	if !found {
		i--
	}
	if i < 0 || !leases[i].Range.Contains(key) {
		return 0
	}
	return leases[i].Generation
}

// To returns the owner that the state goes to, and where its callers reach it:
// an application may send the state there by itself, and use this for the order
// of events alone.
func (e *Export) To() (name leasehold.OwnerID, addr string) {
	return e.departure.To.Owner, e.departure.To.Addr
}

// Send sends a record to [Mover.Import] on the other side, in order. A record is
// at most 4 MiB. Send copies it, gathers small ones, and waits when the other
// side is slower. It fails when the move has failed, with the reason.
func (e *Export) Send(record []byte) error { return e.out.Send(record) }

// Stop ends the serving of the range, as soon as the other side has everything
// that was sent. When it has returned nil, no Check in the range succeeds, and
// none will before the move has failed or the lease is granted anew.
//
// So whatever is read now is final, if it is read under the lock that requests
// hold while they check and operate: a request that was under way when Stop
// returned has the lock, or will find that its Check fails. What has changed since
// it was sent is to be sent again, quickly, because nobody serves the range.
func (e *Export) Stop() error {
	if e.stopped {
		return leasehold.Errorf(opMove, leasehold.ErrInvalid, e.Range().String(), "Stop was called before")
	}
	if err := e.out.Settle(); err != nil {
		return err
	}
	failpoint.Here("owner/copied")
	e.copied()
	select {
	case <-e.departure.quiet:
		failpoint.Here("owner/stopped")
		e.stopped = true
		return nil
	case <-e.out.Context().Done():
		return context.Cause(e.out.Context())
	}
}

// A departure is one move of state away from here.
type departure struct {
	protocol.Departure
	*passage
	leases  []leasehold.Lease // that cover the range: while it moves they stay as they are
	ctx     context.Context   // ends when nobody cares for the move any more
	cancel  context.CancelCauseFunc
	quiet   chan struct{} // closed when the range is no longer served
	late    *time.Timer   // fails the move if the range is not served for too long; nil before
	decided atomic.Bool   // the machine has been told how it ended, or needs no telling
	out     atomic.Pointer[statemove.Outgoing]
}

func (d *departure) progress() (records, bytes uint64) {
	if out := d.out.Load(); out != nil {
		return out.Progress()
	}
	return 0, 0
}

// over says what became of it, and how much was sent.
func (d *departure) over(outcome string, why error) {
	records, bytes := d.progress()
	d.end(outcome, records, bytes, why)
}

// start begins to send a range's state.
func (m *migration) start(p protocol.Departure) {
	d := &departure{Departure: p, passage: m.pass("out", p.Range, p.Ticket, p.To), leases: m.held(), quiet: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancelCause(trace.ContextWithSpan(m.ctx, d.trace(m.ctx)))
	m.mu.Lock()
	m.departures[p.Ticket] = d
	m.mu.Unlock()
	m.running.Go(func() { m.depart(d) })
}

// stop lets an Export know that its range is no longer served.
func (m *migration) stop(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.departures[t]; d != nil && d.late == nil {
		d.late = time.AfterFunc(m.StopTimeout, func() {
			d.cancel(leasehold.Errorf(opMove, leasehold.ErrUnavailable, d.Range.String(), "the target has not confirmed within %v of the stop", m.StopTimeout))
		})
		d.stop()
		close(d.quiet)
	}
}

// end forgets a departure: the machine knows how it ended, or does not care.
func (m *migration) end(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.departures[t]
	if d == nil {
		return
	}
	delete(m.departures, t)
	if d.late != nil {
		d.late.Stop()
	}
	if !d.decided.Swap(true) {
		d.over(cancelled, nil)
	}
	d.cancel(leasehold.Errorf(opMove, leasehold.ErrClosed, d.Range.String(), "the move is over or was called off"))
}

// depart sends the state and tells the machine how that ended.
func (m *migration) depart(d *departure) {
	if err := m.turn(d.ctx); err != nil {
		m.gaveUp(d, err)
		return
	}
	defer func() { <-m.exports }()
	failpoint.Here("owner/before-export")
	out := statemove.Open(d.ctx, statemove.Departure{
		Namespace: m.namespace, Ticket: d.Ticket, Addr: d.Mover, Session: d.To.Session, Idle: m.IdleTimeout,
		DialOptions: append([]grpc.DialOption{grpc.WithTransportCredentials(statemove.To(secure.Identity(d.Identity), m.Credentials))}, m.DialOptions...),
	})
	defer out.Close()
	d.out.Store(out)
	m.running.Go(func() { // the machine need not wait for an Export that hangs
		<-out.Context().Done()
		m.gaveUp(d, context.Cause(out.Context()))
	})
	err := m.export(d, out)
	if err == nil {
		err = out.Finish()
	}
	if err != nil {
		m.gaveUp(d, err)
		return
	}
	if d.decided.CompareAndSwap(false, true) {
		m.logger.Info("the state of a range has been moved", "range", d.Range, "to", d.To.Owner, "move", d.Ticket.Short(), figures(out.Progress()))
		d.over(moved, nil)
		failpoint.Here("owner/move-confirmed")
		m.post(machine.Confirmed{Ticket: d.Ticket})
	}
}

// turn waits until there is room for one more Export.
func (m *migration) turn(ctx context.Context) error {
	late := time.NewTimer(m.IdleTimeout)
	defer late.Stop()
	select {
	case m.exports <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return leasehold.Errorf(opMove, leasehold.ErrLimit, string(m.namespace), "%d others have been under way for %v", cap(m.exports), m.IdleTimeout)
	}
}

// export calls the application.
func (m *migration) export(d *departure, out *statemove.Outgoing) error {
	e := &Export{departure: d, out: out, copied: func() { m.post(machine.Copied{Ticket: d.Ticket}) }}
	ctx := out.Context()
	err := m.call(ctx, "Export", d.Range, func() error { return m.Export(ctx, e) })
	switch {
	case err != nil:
		return leasehold.Errorf(opMove, leasehold.KindOf(err), d.Range.String(), "Export has failed: %w", err)
	case !e.stopped:
		return leasehold.Errorf(opMove, leasehold.ErrInvalid, d.Range.String(), "Export has returned without a call of Stop that succeeded: what changed after it had copied would be lost")
	}
	return nil
}

// gaveUp tells the machine that a departure has failed, unless it knows.
func (m *migration) gaveUp(d *departure, why error) {
	if d.decided.CompareAndSwap(false, true) {
		m.logger.Warn("the state of a range could not be moved: the range stays here", "range", d.Range, "to", d.To.Owner, "move", d.Ticket.Short(), "why", why)
		d.over(failed, why)
		m.post(machine.GaveUp{Ticket: d.Ticket})
	}
}
