package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// inherit returns the leader of the next term, which starts from the recorded table. The owners continue unchanged.
func (l *paperLeader) inherit(p *plan, owners ...*paperOwner) *paperLeader {
	l.t.Helper()
	state := &storage.State{Term: 2, Changes: slices.Clone(l.log)}
	next := newPaperSuccessor(l.t, 2, state, func(c *manager.Config) { c.Policy = p })
	for _, o := range owners {
		o.leader, o.unread = next, nil
		next.owners = append(next.owners, o)
	}
	return next
}

// returns makes an owner contact a new leader: it sends its claims, receives the reply, and acknowledges it. It
// takes an offered lease only if it has it, or if it is fresh.
func (o *paperOwner) returns() {
	o.send()
	had := o.leases
	reply := o.read()
	o.leases = nil
	for _, offer := range reply.Offers {
		if offer.Fresh {
			o.leases = append(o.leases, offer.Lease)
			continue
		}
		for _, l := range had {
			if part, ok := l.Range.Intersect(offer.Range); ok && l.Generation == offer.Generation {
				o.leases = append(o.leases, leasehold.Lease{Range: part, Generation: l.Generation})
			}
		}
	}
	o.send()
}

func importOf(d protocol.Departure, since protocol.Since) protocol.Import {
	return protocol.Import{Ticket: d.Ticket, Range: d.Range, Since: since}
}

// A source that released the range before the old leader could record it reports that to the new leader, which
// records it. This works before the first request of the target, which the table does not name.
func TestSuccessorHearsOfAMoveFromTheSource(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	since := b.moving.last.Arrivals[0].Since
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	b.moving.imports = []protocol.Import{importOf(d, since)}
	for name, first := range map[string]*paperOwner{"the source comes first": a, "the target comes first": b} {
		t.Run(name, func(t *testing.T) {
			a, b := clone(a), clone(b)
			next := l.inherit(p, a, b)
			recorded := len(next.log)
			if first == b || first.holder == b.holder {
				b.returns()
				a.returns()
			} else {
				a.returns()
				b.returns()
			}
			next.settle()
			next.wantChanges(recorded, "moved")
			if len(b.leases) != 1 || b.leases[0].Range != d.Range {
				t.Errorf("the target has %v", b.leases)
			}
		})
	}
}

func clone(o *paperOwner) *paperOwner {
	c, m := *o, *o.moving
	c.moving = &m
	c.leases = slices.Clone(o.leases)
	return &c
}

// A new leader does not act on the first request of an owner, because a message of the old leader may still be in
// flight. Until it does, the source must keep the report.
func TestSuccessorKeepsUnprocessedDepartures(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	next := l.inherit(p, a, b)
	b.returns()
	recorded := len(next.log)
	a.send()
	next.wantChanges(recorded)
	a.read()
	a.wantDepartures(d.Range)
	if a.departures()[0].Ticket != d.Ticket {
		t.Errorf("departures: %+v", a.departures()[0])
	}
}

// If the target does not return, the leader waits for it as long as for the owners in the table; then its state is
// lost, once.
func TestSuccessorWaitsForTheTarget(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	next := l.inherit(p, a)
	p.give("aaa")
	recorded := len(next.log)
	a.returns()
	next.settle()
	a.stopsReporting()
	next.wantChanges(recorded, "moved")
	next.renew(60*time.Second, a)
	next.wantHolder(1<<56, b.holder.Owner, "while it may return")
	next.renew(10*time.Second, a)
	next.wantChanges(recorded, "moved", "lost", "granted")
	next.wantHolder(1<<56, "a", "after that")
}

// The target's first request arrives at the end of the time in which owners of the table may return, before the
// source reports the move. Its lease counts from that request, so the leader waits as long as for any other lease.
func TestSuccessorHoldsForTheTarget(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	since := b.moving.last.Arrivals[0].Since
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	b.moving.imports = []protocol.Import{importOf(d, since)}
	next := l.inherit(p, a, b)
	next.renew(60*time.Second, next.join("c")) // not an outage
	b.send()
	a.returns()
	if o := b.read().Offers; len(o) != 1 || o[0].Range != d.Range {
		t.Fatalf("the target gets %v", o)
	}
	next.owners = []*paperOwner{a} // nothing more from the target
	next.settle()
	p.give("aaa")
	next.renew(55*time.Second, a)
	next.wantHolder(1<<56, b.holder.Owner, "while its lease is valid")
	next.renew(20*time.Second, a)
	next.wantHolder(1<<56, "a", "after that")
}

// A later process with the target's owner name does not have the state.
func TestSuccessorKnowsTheTargetIsGone(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	restarted := clone(b)
	h := *b.holder
	h.Session = leasehold.Session{99}
	restarted.holder, restarted.seq, restarted.lastAck, restarted.term = &h, 0, 0, 0
	next := l.inherit(p, a, restarted)
	recorded := len(next.log)
	restarted.greet()
	a.returns()
	next.settle()
	if got := next.changesSince(recorded); slices.Contains(got, "moved") || !slices.Contains(got, "lost") || next.noted(manager.NoteTargetGone) == 0 {
		t.Errorf("recorded changes: %v", got)
	}
}

// A new leader finds a range that the table has moved to an owner that has not received the lease. If the owner has
// the state, imported after the last loss and before the grant, it gets the lease with the ticket. If not, the
// state is lost.
func TestSuccessorFindsAMoveInTheTable(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(b *paperOwner, d protocol.Departure, since protocol.Since)
		kept  bool
	}{
		{"it has the state", func(*paperOwner, protocol.Departure, protocol.Since) {}, true},
		{"it has no import", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) { b.moving.imports = nil }, false},
		{"it has an import of a part", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Range.Limit--
		}, false},
		{"it has an import from before a loss", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Since.LSN -= 2
		}, false},
		{"it has an import from after the grant", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Since.Newest++
		}, false},
		{"its newest import is from before a loss", func(b *paperOwner, d protocol.Departure, since protocol.Since) {
			since.LSN -= 2
			old := importOf(d, since)
			old.Ticket[0]++
			b.moving.imports = append(b.moving.imports, old)
		}, false},
		{"its newest import is of another range", func(b *paperOwner, d protocol.Departure, since protocol.Since) {
			d.Range = cell(5, 6)
			d.Ticket[0]++
			b.moving.imports = append(b.moving.imports, importOf(d, since))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, p := newMovingLeader(t, "a.a")
			a, b := l.mover("a"), l.mover("b")
			p.give("aaa")
			l.replan()
			p.give("a.a")
			l.replan() // lost at LSN 3 or so
			p.give("aaa")
			l.replan()
			p.give("aba")
			l.replan()
			d := a.departures()[0]
			since := b.moving.last.Arrivals[0].Since
			a.completes(d)
			a.read()
			a.stopsReporting()
			b.unread = nil // it does not receive the lease
			b.moving.imports = []protocol.Import{importOf(d, since)}
			c.spoil(b, d, since)
			next := l.inherit(p, a, b)
			recorded := len(next.log)
			a.returns()
			b.returns()
			kept := len(next.changesSince(recorded)) == 0
			if kept != c.kept {
				t.Fatalf("recorded changes: %v", next.changesSince(recorded))
			}
			if !kept {
				return
			}
			if o := b.unread[len(b.unread)-1].Offers; len(o) != 1 || !o[0].Fresh || o[0].Ticket != d.Ticket {
				t.Errorf("offers: %+v", o)
			}
			next.settle()
			next.wantChanges(recorded)
		})
	}
}

// No owner gets a departure before it has sent exact claims to this leader.
func TestSuccessorStartsNoMoveBlindly(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	next := l.inherit(p, a, b)
	b.returns()
	a.send()
	if r := a.read(); len(r.Departures) != 0 {
		t.Errorf("departures: %v", r.Departures)
	}
	if s := next.machine.Sizes(); s.Moves != 0 {
		t.Errorf("%d moves in progress", s.Moves)
	}
	a.send()
	next.settle()
	a.wantDepartures(cell(1, 2))
}

// The new leader gets an operator's drain order from the owner.
func TestSuccessorRestoresDraining(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	l.must(manager.OrderDrain, "a", leasehold.Range{})
	a.moving.draining = true
	p.give("bbb")
	next := l.inherit(p, a, b)
	b.returns()
	a.returns()
	next.settle()
	if !next.machine.Owners(next.now)[0].Draining || !a.moving.last.Draining {
		t.Error("the new leader has lost the drain order")
	}
	a.wantDepartures(leasehold.All)
	next.must(manager.OrderUndrain, "a", leasehold.Range{})
	a.send() // the end of the drain has not reached it
	if next.machine.Owners(next.now)[0].Draining {
		t.Error("the owner's report overrules the operator")
	}
}

// An inherited lease of which a part moved to another owner, unrecorded, is split.
func TestSuccessorCutsALease(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	next := l.inherit(p, a, b)
	b.returns()
	a.returns()
	next.settle()
	var rows []leasehold.OwnerID
	for _, e := range next.machine.Table().All() {
		rows = append(rows, e.Holder.Owner)
	}
	if !slices.Equal(rows, []leasehold.OwnerID{"a", "b", "a"}) {
		t.Errorf("the table has %v", rows)
	}
	if c := next.log[len(next.log)-1]; c.Kind != table.Moved || c.From.Session != a.holder.Session {
		t.Errorf("the last recorded change is %v", c.String())
	}
}
