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

// inherit returns the leader of the next term, which finds what was recorded, and
// knows nobody yet. The owners go on as they are.
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

// returns is an owner coming to a new leader: it says what it has, hears it, and
// says so. What it is offered it takes only if it has it, or it is fresh.
func (o *paperOwner) returns() {
	o.say()
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
	o.say()
}

func importOf(d protocol.Departure, since protocol.Since) protocol.Import {
	return protocol.Import{Ticket: d.Ticket, Range: d.Range, Since: since}
}

// A source that let go before the old leader could record it tells the new one,
// who records it: also if it has not heard the target yet, of which the table
// says nothing.
func TestSuccessorHearsOfAMoveFromTheSource(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	since := b.moving.last.Arrivals[0].Since
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
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

// A new leader does not act on the first word of an owner, which a message of the
// old leader may yet overtake. Until it does, the source must go on saying it.
func TestSuccessorNamesWhatItHasNotActedOn(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
	next := l.inherit(p, a, b)
	b.returns()
	recorded := len(next.log)
	a.say()
	next.wantChanges(recorded)
	a.read()
	a.wantDepartures(d.Range)
	if a.departures()[0].Ticket != d.Ticket {
		t.Errorf("it is to repeat itself about %+v", a.departures()[0])
	}
}

// If the target never comes, it is waited for as long as for those whom the table
// names; then what it had is lost, once.
func TestSuccessorWaitsForTheTarget(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
	next := l.inherit(p, a)
	p.give("aaa")
	recorded := len(next.log)
	a.returns()
	next.settle()
	a.forgets()
	next.wantChanges(recorded, "moved")
	next.renew(60*time.Second, a)
	next.wantHolder(1<<56, b.holder.Owner, "while it may come")
	next.renew(10*time.Second, a)
	next.wantChanges(recorded, "moved", "lost", "granted")
	next.wantHolder(1<<56, "a", "in the end")
}

// A later process with the target's name has nothing of what was sent.
func TestSuccessorKnowsTheTargetIsGone(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
	restarted := clone(b)
	h := *b.holder
	h.Session = leasehold.Session{99}
	restarted.holder, restarted.seq, restarted.heard, restarted.term = &h, 0, 0, 0
	next := l.inherit(p, a, restarted)
	recorded := len(next.log)
	restarted.greet()
	a.returns()
	next.settle()
	if got := next.changesSince(recorded); slices.Contains(got, "moved") || !slices.Contains(got, "lost") || next.noted(manager.NoteTargetGone) == 0 {
		t.Errorf("what is recorded is %v", got)
	}
}

// A new leader finds that the table has moved a range to an owner that does not
// know of it. If that has the state, from after the last loss and before the
// grant, it gets the lease with the ticket. If not, the state is lost.
func TestSuccessorFindsAMoveInTheTable(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(b *paperOwner, d protocol.Departure, since protocol.Since)
		kept  bool
	}{
		{"it has it", func(*paperOwner, protocol.Departure, protocol.Since) {}, true},
		{"it has nothing", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) { b.moving.imports = nil }, false},
		{"it has something for a part", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Range.Limit--
		}, false},
		{"it has something from before a loss", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Since.LSN -= 2
		}, false},
		{"it has something from after the grant", func(b *paperOwner, _ protocol.Departure, _ protocol.Since) {
			b.moving.imports[0].Since.Newest++
		}, false},
		{"its newest is from before a loss", func(b *paperOwner, d protocol.Departure, since protocol.Since) {
			since.LSN -= 2
			old := importOf(d, since)
			old.Ticket[0]++
			b.moving.imports = append(b.moving.imports, old)
		}, false},
		{"its newest is for another range", func(b *paperOwner, d protocol.Departure, since protocol.Since) {
			d.Range = cell(5, 6)
			d.Ticket[0]++
			b.moving.imports = append(b.moving.imports, importOf(d, since))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, p := newMovingLeader(t, "a.a")
			a, b := l.mover("a"), l.mover("b")
			p.give("aaa")
			l.rethink()
			p.give("a.a")
			l.rethink() // lost at LSN 3 or so
			p.give("aaa")
			l.rethink()
			p.give("aba")
			l.rethink()
			d := a.departures()[0]
			since := b.moving.last.Arrivals[0].Since
			a.completes(d)
			a.read()
			a.forgets()
			b.unread = nil // it does not hear of the lease
			b.moving.imports = []protocol.Import{importOf(d, since)}
			c.spoil(b, d, since)
			next := l.inherit(p, a, b)
			recorded := len(next.log)
			a.returns()
			b.returns()
			kept := len(next.changesSince(recorded)) == 0
			if kept != c.kept {
				t.Fatalf("what is recorded is %v", next.changesSince(recorded))
			}
			if !kept {
				return
			}
			if o := b.unread[len(b.unread)-1].Offers; len(o) != 1 || !o[0].Fresh || o[0].Ticket != d.Ticket {
				t.Errorf("it is offered %+v", o)
			}
			next.settle()
			next.wantChanges(recorded)
		})
	}
}

// Nobody is asked to send anything before it has said to this leader what it has.
func TestSuccessorStartsNoMoveBlindly(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	next := l.inherit(p, a, b)
	b.returns()
	a.say()
	if r := a.read(); len(r.Departures) != 0 {
		t.Errorf("it is to send %v", r.Departures)
	}
	if s := next.machine.Sizes(); s.Moves != 0 {
		t.Errorf("%d moves are under way", s.Moves)
	}
	a.say()
	next.settle()
	a.wantDepartures(cell(1, 2))
}

// What an operator wanted of the old leader, the new one hears from the owner.
func TestSuccessorHearsOfDraining(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	l.must(manager.OrderDrain, "a", leasehold.Range{})
	a.moving.draining = true
	p.give("bbb")
	next := l.inherit(p, a, b)
	b.returns()
	a.returns()
	next.settle()
	if !next.machine.Owners(next.now)[0].Draining || !a.moving.last.Draining {
		t.Error("the new leader does not know")
	}
	a.wantDepartures(leasehold.All)
	next.must(manager.OrderUndrain, "a", leasehold.Range{})
	a.say() // it has not heard yet that it is not
	if next.machine.Owners(next.now)[0].Draining {
		t.Error("what the owner repeats overrules the operator")
	}
}

// An inherited lease of which a part went to another, unrecorded, is cut.
func TestSuccessorCutsALease(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.letsGo(d.Range)
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
		t.Errorf("what is recorded last is %v", c.String())
	}
}
