package owner_test

import (
	"maps"
	"math"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// fuzzedMoves is the model of a fuzzed owner's moves, derived from its events and
// actions.
type fuzzedMoves struct {
	claimed []leasehold.Lease // in the newest request
	unended []leasehold.Lease // claimed, without the leases in RevokedLeases since then
	// departures and arrivals are the leader's newest orders.
	departures []protocol.Departure
	arrivals   []protocol.Arrival
	// begun and expected are the ranges of departures and arrivals, by ticket; stopped are those
	// that the owner has stopped serving, and not served since.
	begun, expected, stopped map[protocol.Ticket]leasehold.Range
	released                 map[protocol.Ticket]bool // departures whose leases were released
	confirming               protocol.Ticket          // the ticket of the Confirmed event in progress
	// imports are confirmed arrivals, installs are leases whose state is being installed, and ready
	// those whose state is installed.
	imports  map[protocol.Ticket]leasehold.Range
	installs map[protocol.Ticket]leasehold.Lease
	ready    []leasehold.Lease
}

func newFuzzedMoves() fuzzedMoves {
	return fuzzedMoves{
		begun: map[protocol.Ticket]leasehold.Range{}, expected: map[protocol.Ticket]leasehold.Range{}, stopped: map[protocol.Ticket]leasehold.Range{},
		released: map[protocol.Ticket]bool{},
		imports:  map[protocol.Ticket]leasehold.Range{}, installs: map[protocol.Ticket]leasehold.Lease{},
	}
}

// installing reports whether the state of a lease, or of the rest of it, is being installed.
func (m *fuzzedMoves) installing(l leasehold.Lease) bool {
	for _, in := range m.installs {
		if in.Generation == l.Generation && in.Range.Covers(l.Range) {
			return true
		}
	}
	return false
}

// installed reports whether the application has installed the state of a lease.
func (m *fuzzedMoves) installed(l leasehold.Lease) bool {
	return slices.ContainsFunc(m.ready, func(r leasehold.Lease) bool { return r.Generation == l.Generation && r.Range.Covers(l.Range) })
}

// ticket returns one of eight tickets, or rarely the zero ticket.
func (o *fuzzedOwner) ticket() protocol.Ticket {
	if b := o.tape.byte(); b < 250 {
		return protocol.Ticket{1 + b%8}
	}
	return protocol.Ticket{}
}

// held returns the leases in the newest request.
func (o *fuzzedOwner) held() []leasehold.Lease { return o.moves.claimed }

// somewhere returns a held range, a part of one, or an arbitrary one.
func (o *fuzzedOwner) somewhere() leasehold.Range {
	held := o.held()
	if b := o.tape.byte(); b < 200 && len(held) > 0 {
		r := held[int(b)%len(held)].Range
		if b%4 == 0 && r.Size() > 3 {
			r.Start += leasehold.Key(r.Size() / 3)
		}
		return r
	}
	r := leasehold.Range{Start: leasehold.Key(o.tape.byte()) << 56}
	r.Limit = r.Start + leasehold.Key(o.tape.byte())<<54
	return r
}

// neighbour returns another owner: valid, or rarely invalid.
func (o *fuzzedOwner) neighbour() *table.Holder {
	switch b := o.tape.byte(); {
	case b < 252:
		return &table.Holder{Owner: "p", Session: leasehold.Session{9}, Addr: "b", Weight: 1}
	case b < 254:
		return &table.Holder{Owner: "p", Weight: math.NaN()}
	}
	return nil
}

// departures returns most of the previous orders and some new ones. arrivals does the
// same.
func (o *fuzzedOwner) departures() (out []protocol.Departure) {
	for _, d := range o.moves.departures {
		if o.tape.below(16) > 0 {
			out = append(out, d)
		}
	}
	for range o.tape.below(8) / 6 {
		out = append(out, protocol.Departure{Ticket: o.ticket(), Range: o.somewhere(), To: o.neighbour(), Mover: []string{"b", "b", "b", ""}[o.tape.below(4)]})
	}
	o.moves.departures = out[:min(len(out), 8)]
	return out
}

func (o *fuzzedOwner) arrivals() (out []protocol.Arrival) {
	for _, a := range o.moves.arrivals {
		if o.tape.below(16) > 0 {
			out = append(out, a)
		}
	}
	for range o.tape.below(8) / 6 {
		out = append(out, protocol.Arrival{Ticket: o.ticket(), Range: o.somewhere(), From: o.neighbour(), Since: protocol.Since{LSN: leasehold.LSN(o.tape.byte())}})
	}
	o.moves.arrivals = out[:min(len(out), 8)]
	return out
}

// withState returns offers of leases with the ticket of an import, or rarely another ticket.
func (o *fuzzedOwner) withState() (out []protocol.Offer) {
	for _, t := range o.sortedImports() {
		if o.tape.below(3) > 0 {
			continue
		}
		l := leasehold.Lease{Range: o.moves.imports[t], Generation: leasehold.Generation(o.tape.near(uint64(o.newest) + 1))}
		if o.tape.below(8) == 0 {
			t = o.ticket()
		}
		out = append(out, protocol.Offer{Lease: l, Fresh: o.tape.below(16) > 0, Ticket: t})
	}
	return out
}

func (o *fuzzedOwner) sortedImports() []protocol.Ticket {
	return slices.SortedFunc(maps.Keys(o.moves.imports), func(a, b protocol.Ticket) int { return slices.Compare(a[:], b[:]) })
}

// stepMove executes an event of a move, which the owner may or may not wait for.
func (o *fuzzedOwner) stepMove() {
	m := &o.moves
	t := o.ticket()
	for range 8 { // find the next ticket with a departure or an arrival
		if _, waits := m.expected[t]; waits || m.begun[t] != (leasehold.Range{}) {
			break
		}
		t = protocol.Ticket{1 + t[0]%8}
	}
	_, begun := m.begun[t]
	_, stopped := m.stopped[t]
	_, expected := m.expected[t]
	_, installs := m.installs[t]
	switch b := o.tape.below(16); {
	case b == 0:
		o.step(owner.GaveUp{Ticket: t})
	case stopped || b == 1:
		o.confirm(t)
	case installs || b == 2:
		o.install(t)
	case begun && b%2 == 0:
		o.step(owner.Copied{Ticket: t})
	case expected || b == 3:
		o.step(owner.Imported{Ticket: t})
	}
}

// install executes Installed, with or without success.
func (o *fuzzedOwner) install(t protocol.Ticket) {
	l, known := o.moves.installs[t]
	failed := o.tape.below(4) == 0
	if known && !failed {
		o.moves.ready = append(o.moves.ready, l)
	}
	delete(o.moves.installs, t)
	o.step(owner.Installed{Ticket: t, Failed: failed})
}

// confirm executes Confirmed: rules 5 and 7.
func (o *fuzzedOwner) confirm(t protocol.Ticket) {
	o.t.Helper()
	o.moves.confirming = t
	o.step(owner.Confirmed{Ticket: t})
	o.moves.confirming = protocol.Ticket{}
}

// release records that the owner releases the range of a confirmed departure, and checks that it was stopped.
func (m *fuzzedMoves) release(o *fuzzedOwner) {
	o.t.Helper()
	if _, stopped := m.stopped[m.confirming]; !stopped {
		o.t.Fatalf("%v is released as moved, and was served after the last stop", m.begun[m.confirming])
	}
	delete(m.stopped, m.confirming)
	m.released[m.confirming] = true
}

// checkMove checks and records an action about moves.
func (o *fuzzedOwner) checkMove(a owner.Action) {
	o.t.Helper()
	m := &o.moves
	switch a := a.(type) {
	case owner.StartMove:
		if a.Ticket.IsZero() || !a.Range.Valid() || a.To == nil || a.Mover == "" {
			o.t.Fatalf("invalid StartMove: %+v", a)
		}
		m.begun[a.Ticket] = a.Range
		delete(m.released, a.Ticket)
		delete(m.stopped, a.Ticket)
	case owner.Stop:
		m.stopped[a.Ticket] = m.begun[a.Ticket]
	case owner.RevokedLeases:
		m.unended = protocol.Missing(m.unended, a.Leases)
		if a.Cause == leasehold.CauseMoved {
			m.release(o)
		}
	case owner.Expect:
		m.expected[a.Ticket] = a.Range
	case owner.Confirm:
		if _, used := m.installs[a.Ticket]; !used {
			m.imports[a.Ticket] = m.expected[a.Ticket]
		}
	case owner.Discard:
		delete(m.imports, a.Ticket)
		delete(m.installs, a.Ticket)
	case owner.Install:
		if r, has := m.imports[a.Ticket]; !has || !r.Covers(a.Lease.Range) {
			o.t.Fatalf("Install of %v without a confirmed import under %v", a.Lease, a.Ticket.Short())
		}
		delete(m.imports, a.Ticket)
		m.installs[a.Ticket] = a.Lease
	}
}

// checkView checks that no lease is served before its state is installed, and removes ranges that are served again
// from stopped.
func (o *fuzzedOwner) checkView() {
	o.t.Helper()
	for _, l := range o.view.Leases {
		if o.moves.installing(l) {
			o.t.Fatalf("%v is served before its state is installed", l)
		}
		for t, r := range o.moves.stopped {
			if r.Overlaps(l.Range) {
				delete(o.moves.stopped, t)
			}
		}
	}
}

// checkReports checks a request against rules 5, 6 and 8.
func (o *fuzzedOwner) checkReports(r *protocol.LeaseRequest) {
	o.t.Helper()
	m := &o.moves
	if gone := protocol.Missing(m.unended, r.Leases); len(gone) > 0 {
		o.t.Fatalf("the request omits %v, without RevokedLeases before", gone)
	}
	m.claimed, m.unended = r.Leases, r.Leases
	for _, rep := range r.Moves {
		if rep.State != protocol.MoveDone {
			continue
		}
		if !m.released[rep.Ticket] {
			o.t.Fatalf("%v is reported as done, without a confirmation of the target", rep.Range)
		}
		for _, l := range r.Leases {
			if l.Range.Overlaps(rep.Range) && l.Generation <= rep.Newest && !m.installing(l) && !m.installed(l) {
				o.t.Fatalf("%v is reported as done, and %v is claimed", rep.Range, l)
			}
		}
	}
	if len(r.Imports) != len(m.imports) {
		o.t.Fatalf("imports %v are reported, %v are confirmed", r.Imports, m.imports)
	}
	for _, in := range r.Imports {
		if known, ok := m.imports[in.Ticket]; !ok || known != in.Range {
			o.t.Fatalf("import %+v is reported, %v are confirmed", in, m.imports)
		}
	}
}
