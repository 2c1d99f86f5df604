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

// An Import is a range whose state [Mover.Import] takes in.
type Import struct {
	arrival protocol.Arrival
	in      *statemove.Incoming
}

// Range returns the keys whose state comes.
func (i *Import) Range() leasehold.Range { return i.arrival.Range }

// From returns the owner that the state comes from, and where its callers reach
// it.
func (i *Import) From() (name leasehold.OwnerID, addr string) {
	return i.arrival.From.Owner, i.arrival.From.Addr
}

// Records are what Export has sent, in order. They wait for more until there is
// no more, and end with an error if the move fails. They must be read to their
// end, once, by one goroutine; how fast they are read is how fast they are sent.
//
// A record may be kept, but may be a part of something larger, up to 64 KiB,
// which then stays in memory with it. Copy what is kept for long.
func (i *Import) Records() iter.Seq2[[]byte, error] { return i.in.Records() }

// An arrival is one move of state to here.
type arrival struct {
	protocol.Arrival
	*passage
	granted chan leasehold.Lease // has room for the one

	// Under the migration's lock:
	in        *statemove.Incoming
	confirmed bool // the source counts on us, and somebody waits for the lease
}

// expect lets the state of a range in.
func (m *migration) expect(p protocol.Arrival) {
	a := &arrival{Arrival: p, passage: m.pass("in", p.Range, p.Ticket, p.From), granted: make(chan leasehold.Lease, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	a.in = m.server.Expect(p.Ticket, secure.Identity(p.Identity), func(in *statemove.Incoming) { m.running.Go(func() { m.arrive(a, in) }) })
	if m.parting {
		a.in.Refuse(m.leaving())
	}
	m.arrivals[p.Ticket] = a
}

// confirm tells the source that its state is here.
func (m *migration) confirm(t protocol.Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.arrivals[t]; a != nil {
		a.confirmed = a.in.Confirm()
	}
}

// install has the application put the state in its place. From here on the
// arrival sees to its own end.
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
		a.end(failed, 0, 0, m.over(a))
		a.in.Close(m.over(a))
	}
	m.running.Go(func() {
		m.lose(t, l, leasehold.Errorf(opMove, leasehold.ErrNotFound, l.Range.String(), "it is not here any more"))
	})
}

// lose tells the machine that a lease has come whose state is not in its place
// and never will be.
func (m *migration) lose(t protocol.Ticket, l leasehold.Lease, why error) {
	m.logger.Error("the state of a range is lost: it has come, and was not put in its place", "range", l.Range, "generation", l.Generation, "move", t.Short(), "why", why)
	m.post(machine.Installed{Ticket: t, Failed: true})
}

func (m *migration) over(a *arrival) error {
	return leasehold.Errorf(opMove, leasehold.ErrClosed, a.Range.String(), "the move is over or was called off")
}

// discard gives up what has come, or has not.
func (m *migration) discard(t protocol.Ticket) {
	m.mu.Lock()
	a := m.arrivals[t]
	delete(m.arrivals, t)
	m.mu.Unlock()
	if a != nil {
		a.end(cancelled, 0, 0, nil)
		a.in.Close(m.over(a))
	}
}

// arrive takes the state in, and puts it in its place when the lease is here.
func (m *migration) arrive(a *arrival, in *statemove.Incoming) {
	defer in.Release()
	put, err := m.take(a, in)
	if err != nil {
		m.logger.Warn("the state of a range could not be taken in", "range", a.Range, "from", a.From.Owner, "move", a.Ticket.Short(), "why", err)
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
		in.Close(m.over(a))
	case <-in.Context().Done():
		m.abandon(a, context.Cause(in.Context()))
	}
}

// abandon stops waiting for a lease. One that has come meanwhile is not left
// without an answer, nor is one that comes later: install sees to that.
func (m *migration) abandon(a *arrival, why error) {
	m.mu.Lock()
	a.confirmed = false
	m.mu.Unlock()
	select {
	case lease := <-a.granted:
		m.callbacks.installed(lease.Generation)
		a.end(failed, 0, 0, why)
		m.lose(a.Ticket, lease, why)
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

// put calls the function that Import has returned, and tells the machine how
// that went, or that it takes too long.
func (m *migration) put(a *arrival, lease leasehold.Lease, put func(leasehold.Lease)) {
	begun := time.Now()
	var told atomic.Bool
	tell := func(err error) {
		switch {
		case !told.CompareAndSwap(false, true):
		case err != nil:
			a.end(failed, 0, 0, err)
			m.lose(a.Ticket, lease, err)
		default:
			m.logger.Info("the state of a range has been taken in", "range", lease.Range, "generation", lease.Generation, "from", a.From.Owner, "move", a.Ticket.Short(), "installed in", time.Since(begun))
			a.end(moved, 0, 0, nil)
			m.post(machine.Installed{Ticket: a.Ticket})
		}
	}
	late := leasehold.Errorf(opMove, leasehold.ErrUnavailable, a.Range.String(), "install has not returned in %v", m.InstallTimeout)
	ctx, cancel := context.WithTimeoutCause(m.ctx, m.InstallTimeout, late)
	defer cancel()
	m.running.Go(func() {
		<-ctx.Done()
		tell(context.Cause(ctx))
	})
	err := m.call(ctx, "install", a.Range, func() error {
		if put != nil {
			put(lease)
		}
		return nil
	})
	failpoint.Here("owner/installed")
	m.callbacks.installed(lease.Generation)
	tell(err)
}
