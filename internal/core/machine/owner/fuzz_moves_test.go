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

// fuzzedMoves is what is known about a fuzzed owner's moves, from what it did and
// from what happened to it.
type fuzzedMoves struct {
	said    []leasehold.Lease // what it last said that it holds
	unended []leasehold.Lease // that, but for what it has since told the application to have ended
	// departures and arrivals are what the leader has named last.
	departures []protocol.Departure
	arrivals   []protocol.Arrival
	// begun and expected are the ranges of moves, by ticket; stopped are those
	// that it has stopped serving, and not served since.
	begun, expected, stopped map[protocol.Ticket]leasehold.Range
	letGo                    map[protocol.Ticket]bool // moves that it has let go of
	confirming               protocol.Ticket          // the one whose target is just confirming
	// imports is state that it has confirmed, installs what it was told to put in
	// its place, and ready what has been put there.
	imports  map[protocol.Ticket]leasehold.Range
	installs map[protocol.Ticket]leasehold.Lease
	ready    []leasehold.Lease
}

func newFuzzedMoves() fuzzedMoves {
	return fuzzedMoves{
		begun: map[protocol.Ticket]leasehold.Range{}, expected: map[protocol.Ticket]leasehold.Range{}, stopped: map[protocol.Ticket]leasehold.Range{},
		letGo:   map[protocol.Ticket]bool{},
		imports: map[protocol.Ticket]leasehold.Range{}, installs: map[protocol.Ticket]leasehold.Lease{},
	}
}

// installing reports whether a lease, or what is left of it, is not in its place.
func (m *fuzzedMoves) installing(l leasehold.Lease) bool {
	for _, in := range m.installs {
		if in.Generation == l.Generation && in.Range.Covers(l.Range) {
			return true
		}
	}
	return false
}

// installed reports whether the application has put the state of a lease in its
// place.
func (m *fuzzedMoves) installed(l leasehold.Lease) bool {
	return slices.ContainsFunc(m.ready, func(r leasehold.Lease) bool { return r.Generation == l.Generation && r.Range.Covers(l.Range) })
}

// ticket is one of a few, or of none.
func (o *fuzzedOwner) ticket() protocol.Ticket {
	if b := o.tape.byte(); b < 250 {
		return protocol.Ticket{1 + b%8}
	}
	return protocol.Ticket{}
}

// held is what the owner has, as it last said.
func (o *fuzzedOwner) held() []leasehold.Lease { return o.moves.said }

// somewhere is a range that the owner has, or a part of it, or any.
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

// neighbour is another owner: as it should be, or not.
func (o *fuzzedOwner) neighbour() *table.Holder {
	switch b := o.tape.byte(); {
	case b < 252:
		return &table.Holder{Owner: "p", Session: leasehold.Session{9}, Addr: "b", Weight: 1}
	case b < 254:
		return &table.Holder{Owner: "p", Weight: math.NaN()}
	}
	return nil
}

// departures are those that the leader has named before, but for a few, and some
// new ones. So are arrivals.
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

// withState are offers of leases with the state that has come, or with some other.
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

// getOn lets something happen to a move: what the owner waits for, or what it no
// longer waits for.
func (o *fuzzedOwner) getOn() {
	m := &o.moves
	t := o.ticket()
	for range 8 { // the next one that something is known of
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

// install is the application having put state in its place, or not.
func (o *fuzzedOwner) install(t protocol.Ticket) {
	l, known := o.moves.installs[t]
	failed := o.tape.below(4) == 0
	if known && !failed {
		o.moves.ready = append(o.moves.ready, l)
	}
	delete(o.moves.installs, t)
	o.step(owner.Installed{Ticket: t, Failed: failed})
}

// confirm is the target of a move saying that it has everything: rules 5 and 7.
func (o *fuzzedOwner) confirm(t protocol.Ticket) {
	o.t.Helper()
	o.moves.confirming = t
	o.step(owner.Confirmed{Ticket: t})
	o.moves.confirming = protocol.Ticket{}
}

// lets is the owner letting go of a move whose target has just confirmed.
func (m *fuzzedMoves) lets(o *fuzzedOwner) {
	o.t.Helper()
	if _, stopped := m.stopped[m.confirming]; !stopped {
		o.t.Fatalf("it lets go of %v, which it has served since it last stopped", m.begun[m.confirming])
	}
	delete(m.stopped, m.confirming)
	m.letGo[m.confirming] = true
}

// checkMove checks and remembers what an owner does about moves.
func (o *fuzzedOwner) checkMove(a owner.Action) {
	o.t.Helper()
	m := &o.moves
	switch a := a.(type) {
	case owner.StartMove:
		if a.Ticket.IsZero() || !a.Range.Valid() || a.To == nil || a.Mover == "" {
			o.t.Fatalf("it begins a move that makes no sense: %+v", a)
		}
		m.begun[a.Ticket] = a.Range
		delete(m.letGo, a.Ticket)
		delete(m.stopped, a.Ticket)
	case owner.Stop:
		m.stopped[a.Ticket] = m.begun[a.Ticket]
	case owner.RevokedLeases:
		m.unended = protocol.Missing(m.unended, a.Leases)
		if a.Cause == leasehold.CauseMoved {
			m.lets(o)
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
			o.t.Fatalf("it is to install %v, and has confirmed nothing for it under %v", a.Lease, a.Ticket.Short())
		}
		delete(m.imports, a.Ticket)
		m.installs[a.Ticket] = a.Lease
	}
}

// checkView: what is stopped is not served, or it has not been stopped any more;
// and nothing is served before its state is in its place.
func (o *fuzzedOwner) checkView() {
	o.t.Helper()
	for _, l := range o.view.Leases {
		if o.moves.installing(l) {
			o.t.Fatalf("it serves %v, whose state is not in its place", l)
		}
		for t, r := range o.moves.stopped {
			if r.Overlaps(l.Range) {
				delete(o.moves.stopped, t)
			}
		}
	}
}

// checkReports holds a request to rules 5, 6 and 8.
func (o *fuzzedOwner) checkReports(r *protocol.LeaseRequest) {
	o.t.Helper()
	m := &o.moves
	if gone := protocol.Missing(m.unended, r.Leases); len(gone) > 0 {
		o.t.Fatalf("it says that it no longer has %v, and has not told the application", gone)
	}
	m.said, m.unended = r.Leases, r.Leases
	for _, rep := range r.Moves {
		if rep.State != protocol.MoveDone {
			continue
		}
		if !m.letGo[rep.Ticket] {
			o.t.Fatalf("it says that %v is done, and its target has not confirmed", rep.Range)
		}
		for _, l := range r.Leases {
			if l.Range.Overlaps(rep.Range) && l.Generation <= rep.Newest && !m.installing(l) && !m.installed(l) {
				o.t.Fatalf("it says that %v is done, and has %v", rep.Range, l)
			}
		}
	}
	if len(r.Imports) != len(m.imports) {
		o.t.Fatalf("it says that it has %v, and has confirmed %v", r.Imports, m.imports)
	}
	for _, in := range r.Imports {
		if known, ok := m.imports[in.Ticket]; !ok || known != in.Range {
			o.t.Fatalf("it says that it has %+v, and has confirmed %v", in, m.imports)
		}
	}
}
