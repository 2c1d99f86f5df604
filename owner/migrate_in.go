package owner

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/runtime/failpoint"
	"github.com/leasehold-dev/leasehold/internal/runtime/statemove"
	"github.com/leasehold-dev/leasehold/secure"
)

// An Import is a range whose state [Mover.Import] receives.
type Import struct {
	arrival protocol.Arrival
	in      *statemove.Incoming
}

// Range returns the range of the move.
func (i *Import) Range() leasehold.Range { return i.arrival.Range }

// From returns the name of the source and its address for callers.
func (i *Import) From() (name leasehold.OwnerID, addr string) {
	return i.arrival.From.Owner, i.arrival.From.Addr
}

// Records yields the records that Export sends, in order. The sequence waits for the next
// record, and ends with an error if the move fails. One goroutine must read it to its
// end, once; flow control slows the sender to the speed of the reader.
//
// A record may be kept, but it may be a slice of a buffer of up to 64 KiB,
// which then stays in memory. Copy records that are kept for long.
func (i *Import) Records() iter.Seq2[[]byte, error] { return i.in.Records() }

// An arrival is a move to this owner.
type arrival struct {
	protocol.Arrival
	*moveTrace
	granted chan leasehold.Lease // buffers the lease

	// Under the migration's lock:
	in        *statemove.Incoming
	confirmed bool // the source has the confirmation, and a goroutine waits for the lease
}

// expect accepts the transfer of an announced move.
func (m *migration) expect(p protocol.Arrival) {
	a := &arrival{Arrival: p, moveTrace: m.newMoveTrace("in", p.Range, p.Ticket, p.From), granted: make(chan leasehold.Lease, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	a.in = m.server.Expect(p.Ticket, secure.Identity(p.Identity), func(in *statemove.Incoming) { m.running.Go(func() { m.arrive(a, in) }) })
	if m.parting {
		a.in.Refuse(m.partingError())
	}
	m.arrivals[p.Ticket] = a
}

// confirm confirms to the source that the state has arrived.
func (m *migration) confirm(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.arrivals[t]; a != nil {
		a.confirmed = a.in.Confirm()
	}
}

// install passes the lease to the arrival's goroutine, which makes the application install the
// state.
func (m *migration) install(t protocol.Ticket, l leasehold.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.arrivals[t]
	delete(m.arrivals, t)
	if a != nil && a.confirmed {
		m.callbacks.installing(l.Generation)
		a.granted <- l
		return
	}
	if a != nil {
		a.end(failed, 0, 0, endedError(a.Range))
		a.in.Close(endedError(a.Range))
	}
	m.running.Go(func() {
		m.installFailed(t, l, leasehold.Errorf(opMove, leasehold.ErrNotFound, l.Range.String(), "the arrival has ended"))
	})
}

// installFailed posts to the machine that the state of a granted lease cannot be installed.
func (m *migration) installFailed(t protocol.Ticket, l leasehold.Lease, why error) {
	m.logger.Error("state of a range is lost: it has arrived, but was not installed", "range", l.Range, "generation", l.Generation, "move", t.Short(), "why", why)
	m.post(machine.Installed{Ticket: t, Failed: true})
}

func endedError(r leasehold.Range) error {
	return leasehold.Errorf(opMove, leasehold.ErrClosed, r.String(), "the move has ended or was cancelled")
}

// discard cancels an arrival.
func (m *migration) discard(t protocol.Ticket) {
	m.mu.Lock()
	a := m.arrivals[t]
	delete(m.arrivals, t)
	m.mu.Unlock()
	if a != nil {
		a.end(cancelled, 0, 0, nil)
		a.in.Close(endedError(a.Range))
	}
}

// arrive receives the state, and installs it after the lease is granted.
func (m *migration) arrive(a *arrival, in *statemove.Incoming) {
	defer in.Release()
	put, err := m.take(a, in)
	if err != nil {
		m.logger.Warn("state of a range could not be imported", "range", a.Range, "from", a.From.Owner, "move", a.Ticket.Short(), "why", err)
		a.end(failed, 0, 0, err)
		in.Refuse(err)
		return
	}
	failpoint.Here("owner/imported")
	m.post(machine.Imported{Ticket: a.Ticket})
	select {
	case lease := <-a.granted:
		failpoint.Here("owner/before-install")
		m.put(a, lease, put)
		in.Close(endedError(a.Range))
	case <-in.Context().Done():
		m.abandon(a, context.Cause(in.Context()))
	}
}

// abandon stops waiting for a lease. A lease that was granted meanwhile fails to install;
// install handles a lease that is granted later.
func (m *migration) abandon(a *arrival, why error) {
	m.mu.Lock()
	a.confirmed = false
	m.mu.Unlock()
	select {
	case lease := <-a.granted:
		m.callbacks.installed(lease.Generation)
		a.end(failed, 0, 0, why)
		m.installFailed(a.Ticket, lease, why)
	default:
	}
}

// take calls the application's Import.
func (m *migration) take(a *arrival, in *statemove.Incoming) (put func(leasehold.Lease), err error) {
	span := a.trace(trace.ContextWithRemoteSpanContext(context.Background(), in.Origin()))
	ctx := trace.ContextWithSpan(in.Context(), span)
	err = m.call(ctx, "Import", a.Range, func() (err error) {
		put, err = m.Import(ctx, &Import{a.Arrival, in})
		return err
	})
	if err == nil {
		err = in.Complete()
	}
	if err != nil {
		return nil, leasehold.Errorf(opMove, leasehold.KindOf(err), a.Range.String(), "Import has failed: %w", err)
	}
	return put, nil
}

// put calls the install function of the application, and posts the result or a timeout to the
// machine, whichever is first.
func (m *migration) put(a *arrival, lease leasehold.Lease, put func(leasehold.Lease)) {
	begun := time.Now()
	var reported atomic.Bool
	report := func(err error) {
		switch {
		case !reported.CompareAndSwap(false, true):
		case err != nil:
			a.end(failed, 0, 0, err)
			m.installFailed(a.Ticket, lease, err)
		default:
			m.logger.Info("state of a range imported", "range", lease.Range, "generation", lease.Generation, "from", a.From.Owner, "move", a.Ticket.Short(), "installed in", time.Since(begun))
			a.end(moved, 0, 0, nil)
			m.post(machine.Installed{Ticket: a.Ticket})
		}
	}
	timeout := leasehold.Errorf(opMove, leasehold.ErrUnavailable, a.Range.String(), "install has not returned in %v", m.InstallTimeout)
	ctx, cancel := context.WithTimeoutCause(m.ctx, m.InstallTimeout, timeout)
	defer cancel()
	m.running.Go(func() {
		<-ctx.Done()
		report(context.Cause(ctx))
	})
	err := m.call(ctx, "install", a.Range, func() error {
		if put != nil {
			put(lease)
		}
		return nil
	})
	failpoint.Here("owner/installed")
	m.callbacks.installed(lease.Generation)
	report(err)
}
