package manager_test

import (
	"math"
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

const fuzzMoves = 3 // limit of moves of an owner

// A doneReport is a report of a completed move.
type doneReport struct {
	from, to leasehold.Session
	ticket   protocol.Ticket
	r        leasehold.Range
}

// mover returns the address at which a peer receives state. One in eight has none, and sometimes it changes.
func (l *fuzzedLeader) mover(p *fuzzedPeer) string {
	if p.holder.Session[0]%8 == 0 || l.tape.below(64) == 63 {
		return ""
	}
	return "x"
}

// move adds move reports to a request: mostly the moves that the peer was sent, with some progress, or invalid
// ones.
func (l *fuzzedLeader) move(p *fuzzedPeer, r *protocol.LeaseRequest) {
	l.getOn(p, r)
	r.Moves, r.Imports, r.Parting = slices.Clone(p.reports), slices.Clone(p.imports), p.parting
	switch b := l.tape.byte(); {
	case b < 200:
	case b < 208:
		p.parting = l.tape.below(4) == 0
	case b < 216:
		r.Draining = true
	case b < 232:
		r.Loads = l.loads(r.Leases)
	case b < 240:
		r.Moves = append(r.Moves, l.nonsense())
	case b < 248:
		r.Imports = append(r.Imports, protocol.Import{Ticket: l.ticket(), Range: leasehold.All, Since: protocol.Since{LSN: leasehold.LSN(l.tape.near(0))}})
	default:
		r.Moves = slices.Repeat([]protocol.MoveReport{l.nonsense()}, 1+l.tape.below(2)*protocol.MaxMoves)
	}
	for _, m := range r.Moves {
		if m.State == protocol.MoveDone && m.To != nil {
			l.done = append(l.done, doneReport{p.holder.Session, m.To.Session, m.Ticket, m.Range})
		}
	}
}

// getOn lets a peer make progress with its moves.
func (l *fuzzedLeader) getOn(p *fuzzedPeer, r *protocol.LeaseRequest) {
	p.reports = slices.DeleteFunc(p.reports, func(m protocol.MoveReport) bool {
		return !slices.ContainsFunc(p.last.Departures, func(d protocol.Departure) bool { return d.Ticket == m.Ticket })
	})
	for _, d := range p.last.Departures {
		i := slices.IndexFunc(p.reports, func(m protocol.MoveReport) bool { return m.Ticket == d.Ticket })
		if i < 0 {
			i = len(p.reports)
			p.reports = append(p.reports, protocol.MoveReport{Ticket: d.Ticket, Range: d.Range, To: d.To, State: protocol.MoveCopying, Newest: newestWithin(r.Leases, d.Range)})
		}
		m := &p.reports[i]
		switch b := l.tape.byte(); {
		case m.State >= protocol.MoveDone || b >= 200:
		case b < 20:
			m.State = protocol.MoveFailed
		case b < 100:
			m.Records++
		case m.State == protocol.MoveCopying:
			m.State = protocol.MoveStopped
		default:
			m.State = protocol.MoveDone
		}
		if m.State == protocol.MoveDone {
			r.Leases = without(r.Leases, m.Range, m.Newest)
		}
	}
	for _, a := range p.last.Arrivals {
		known := slices.ContainsFunc(p.imports, func(in protocol.Import) bool { return in.Ticket == a.Ticket })
		if !known && l.tape.below(2) == 0 && len(p.imports) < 8 {
			p.imports = append(p.imports, protocol.Import{Ticket: a.Ticket, Range: a.Range, Since: a.Since})
		}
	}
	if len(p.imports) > 0 && l.tape.below(8) == 0 {
		p.imports = p.imports[1:]
	}
}

func newestWithin(leases []leasehold.Lease, r leasehold.Range) (g leasehold.Generation) {
	for _, l := range leases {
		if l.Range.Overlaps(r) {
			g = max(g, l.Generation)
		}
	}
	return g
}

// without drops leases in a range, up to a generation.
func without(leases []leasehold.Lease, r leasehold.Range, newest leasehold.Generation) []leasehold.Lease {
	var gone []leasehold.Lease
	for _, l := range leases {
		if part, ok := l.Range.Intersect(r); ok && l.Generation <= newest {
			gone = append(gone, leasehold.Lease{Range: part, Generation: l.Generation})
		}
	}
	return protocol.Missing(leases, gone)
}

func (l *fuzzedLeader) ticket() protocol.Ticket { return protocol.Ticket{l.tape.byte() % 4} }

// nonsense returns an unfounded or invalid report.
func (l *fuzzedLeader) nonsense() protocol.MoveReport {
	to := &table.Holder{Owner: leasehold.OwnerID([]string{"a", "b", "e", ""}[l.tape.below(4)]), Session: leasehold.Session{1 + l.tape.byte()%20}, Addr: "x", Weight: 1}
	if l.tape.below(8) == 0 {
		to = nil
	}
	return protocol.MoveReport{
		Ticket: l.ticket(), Range: leasehold.Range{Start: leasehold.Key(l.tape.byte()) << 56, Limit: leasehold.Key(l.tape.byte()) << 56},
		To: to, State: protocol.MoveState(l.tape.below(6)), Newest: leasehold.Generation(l.tape.near(uint64(l.stored.Newest()))),
	}
}

// loads returns loads of the peer's leases, or of any range.
func (l *fuzzedLeader) loads(leases []leasehold.Lease) *partition.Loads {
	out := &partition.Loads{}
	for _, h := range leases {
		out.Cells = append(out.Cells, partition.Cell{Range: h.Range, Rate: float64(l.tape.byte()) * 10})
		out.Hot = append(out.Hot, partition.HotKey{Key: h.Range.Last(), Rate: float64(l.tape.byte())})
	}
	if l.tape.below(8) == 0 {
		out.Cells = append(out.Cells, partition.Cell{Range: leasehold.All, Rate: []float64{-1, math.NaN(), 1e300, 7}[l.tape.below(4)]})
	}
	return out
}

// order sends an order of an operator, or a preview.
func (l *fuzzedLeader) order() {
	o := manager.Order{
		ID: 1, Kind: manager.OrderKind(l.tape.below(6)), Owner: leasehold.OwnerID([]string{"a", "b", "c", "d", "x"}[l.tape.below(5)]),
		Range: leasehold.Range{Start: leasehold.Key(l.tape.byte()) << 56, Limit: leasehold.Key(l.tape.byte()) << 56},
	}
	if _, err := l.machine.Preview(l.now, o); err != nil && leasehold.KindOf(err) == leasehold.Other {
		l.t.Fatalf("the error of a preview has no kind: %v", err)
	}
	l.orders++
	l.step(o)
}

// checkOrders checks the moves in a reply: only fresh leases have a ticket, and the limit of moves holds.
func (l *fuzzedLeader) checkOrders(r *protocol.LeaseReply) {
	l.t.Helper()
	for _, o := range r.Offers {
		if !o.Ticket.IsZero() && !o.Fresh {
			l.t.Fatalf("%v has a ticket, and is not fresh", o.Lease)
		}
	}
	under := 0
	for _, d := range r.Departures {
		if d.Mover != "" {
			under++
		}
	}
	if under > fuzzMoves {
		l.t.Fatalf("an owner has %d departures", under)
	}
}

// checkMoved checks invariant I7 as far as a leader can: the source of a recorded move has reported it as done.
func (l *fuzzedLeader) checkMoved(c *table.Change) {
	l.t.Helper()
	if c.Kind != table.Moved {
		return
	}
	for _, d := range l.done {
		if d.from == c.From.Session && d.to == c.Holder.Session && d.r.Covers(c.Range) {
			return
		}
	}
	l.t.Fatalf("%v was recorded without a report of its source", c.String())
}
