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

// An Export is a range whose state [Mover.Export] sends. It is not safe for concurrent use.
type Export struct {
	departure *departure
	out       *statemove.Outgoing
	copied    func()
	endWork   func() error // ends the calls of Each on the range
	stopped   bool
}

// Range returns the range of the move.
func (e *Export) Range() leasehold.Range { return e.departure.Range }

// Generation returns the generation of the source's lease on a key of the range.
// State that is stamped with a lower one is from an earlier tenure: other owners may
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

// To returns the name of the target and its address for callers. An application may send the
// state there on its own connection, and use the Export only for Stop.
func (e *Export) To() (name leasehold.OwnerID, addr string) {
	return e.departure.To.Owner, e.departure.To.Addr
}

// Send sends a record to [Mover.Import] of the target, in order. A record is
// at most 4 MiB. Send copies it, batches small ones, and blocks while the target is
// slower. It returns the reason after the move has failed.
func (e *Export) Send(record []byte) error { return e.out.Send(record) }

// Stop stops serving the range, after the target has received all records
// so far. After it has returned nil, every Check and Held in the range fails until
// the move has failed or the lease is granted again. OnSuspend is called with the leases; they
// end when the target has confirmed.
//
// So state that is read after Stop is final, if it is read under the lock that requests
// hold while they check and operate: a request that runs when Stop
// returns either has the lock, or its Check fails. Send the changes since the
// first copy quickly, because no server serves the range.
func (e *Export) Stop() error {
	if e.stopped {
		return leasehold.Errorf(opMove, leasehold.ErrInvalid, e.Range().String(), "Stop was called twice")
	}
	if err := e.out.Settle(); err != nil {
		return err
	}
	if err := e.endWork(); err != nil {
		return err
	}
	failpoint.Here("owner/copied")
	e.copied()
	select {
	case <-e.departure.stopped:
		failpoint.Here("owner/stopped")
		e.stopped = true
		return nil
	case <-e.out.Context().Done():
		return context.Cause(e.out.Context())
	}
}

// A departure is a move from this owner.
type departure struct {
	protocol.Departure
	*moveTrace
	leases  []leasehold.Lease // cover the range; they do not change while it moves
	ctx     context.Context   // ends with the move
	cancel  context.CancelCauseFunc
	stopped chan struct{} // closed when checks in the range fail
	timeout *time.Timer   // of StopTimeout; nil before the stop
	decided atomic.Bool   // the result was posted to the machine, or the machine has ended the move
	out     atomic.Pointer[statemove.Outgoing]
}

func (d *departure) progress() (records, bytes uint64) {
	if out := d.out.Load(); out != nil {
		return out.Progress()
	}
	return 0, 0
}

// finish ends the trace with the outcome and the size of the state that was sent.
func (d *departure) finish(outcome string, why error) {
	records, bytes := d.progress()
	d.end(outcome, records, bytes, why)
}

// start starts the goroutine of a departure.
func (m *migration) start(p protocol.Departure) {
	d := &departure{Departure: p, moveTrace: m.newMoveTrace("out", p.Range, p.Ticket, p.To), leases: m.held(), stopped: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancelCause(trace.ContextWithSpan(m.ctx, d.trace(m.ctx)))
	m.mu.Lock()
	m.departures[p.Ticket] = d
	m.mu.Unlock()
	m.running.Go(func() { m.depart(d) })
}

// stop lets Export.Stop return: checks in the range fail.
func (m *migration) stop(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.departures[t]; d != nil && d.timeout == nil {
		d.timeout = time.AfterFunc(m.StopTimeout, func() {
			d.cancel(leasehold.Errorf(opMove, leasehold.ErrUnavailable, d.Range.String(), "the target has not confirmed within %v of the stop", m.StopTimeout))
		})
		d.stop()
		close(d.stopped)
	}
}

// end removes a departure that the machine has ended, and cancels it if it still runs.
func (m *migration) end(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.departures[t]
	if d == nil {
		return
	}
	delete(m.departures, t)
	if d.timeout != nil {
		d.timeout.Stop()
	}
	if !d.decided.Swap(true) {
		d.finish(cancelled, nil)
	}
	d.cancel(endedError(d.Range))
	m.work.moved(t) // in this order: see calls.leave
}

// depart sends the state and posts the result to the machine.
func (m *migration) depart(d *departure) {
	if err := m.acquireExport(d.ctx); err != nil {
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
	m.running.Go(func() { // the result does not wait for an Export that hangs
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
		m.logger.Info("state of a range moved", "range", d.Range, "to", d.To.Owner, "move", d.Ticket.Short(), stateSize(out.Progress()))
		d.finish(moved, nil)
		failpoint.Here("owner/move-confirmed")
		m.post(machine.Confirmed{Ticket: d.Ticket})
	}
}

// acquireExport waits for the semaphore of Exports.
func (m *migration) acquireExport(ctx context.Context) error {
	timeout := time.NewTimer(m.IdleTimeout)
	defer timeout.Stop()
	select {
	case m.exports <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timeout.C:
		return leasehold.Errorf(opMove, leasehold.ErrLimit, string(m.namespace), "%d other moves have been running for %v", cap(m.exports), m.IdleTimeout)
	}
}

// export calls the application's Export.
func (m *migration) export(d *departure, out *statemove.Outgoing) error {
	ctx := out.Context()
	e := &Export{
		departure: d, out: out, copied: func() { m.post(machine.Copied{Ticket: d.Ticket}) },
		endWork: func() error { return m.work.leave(d.ctx, d.Ticket, d.Range, m.StopTimeout) },
	}
	err := m.call(ctx, "Export", d.Range, func() error { return m.Export(ctx, e) })
	switch {
	case err != nil:
		return leasehold.Errorf(opMove, leasehold.KindOf(err), d.Range.String(), "Export has failed: %w", err)
	case !e.stopped:
		return leasehold.Errorf(opMove, leasehold.ErrInvalid, d.Range.String(), "Export has returned without a successful call of Stop: changes after the copy would be lost")
	}
	return nil
}

// gaveUp posts the failure of a departure to the machine, unless a result was posted before.
func (m *migration) gaveUp(d *departure, why error) {
	if d.decided.CompareAndSwap(false, true) {
		m.logger.Warn("state of a range could not be moved: this owner keeps the range", "range", d.Range, "to", d.To.Owner, "move", d.Ticket.Short(), "why", why)
		d.finish(failed, why)
		m.post(machine.GaveUp{Ticket: d.Ticket})
	}
}
