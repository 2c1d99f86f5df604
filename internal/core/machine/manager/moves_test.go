package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// begunMove returns a leader that has asked a to send cell 1 to b. It has led for
// long enough to know everyone.
func begunMove(t *testing.T, options ...func(*manager.Config)) (l *paperLeader, p *plan, a, b *paperOwner, d protocol.Departure) {
	t.Helper()
	l, p = newMovingLeader(t, "aaa", options...)
	a, b = l.mover("a"), l.mover("b")
	l.renew(70*time.Second, a, b)
	p.give("aba")
	l.rethink()
	a.wantDepartures(cell(1, 2))
	return l, p, a, b, a.departures()[0]
}

// Where both can move state nothing is recalled: the source goes on, and both
// are told of the move under one ticket.
func TestMoveInsteadOfRecall(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	arrivals := b.moving.last.Arrivals
	if len(arrivals) != 1 || arrivals[0].Ticket != d.Ticket || arrivals[0].Range != d.Range || arrivals[0].From != a.holder {
		t.Errorf("the target is told %+v", arrivals)
	}
	if want := (protocol.Since{LSN: 1, Newest: 1}); arrivals[0].Since != want {
		t.Errorf("the target is told that it began at %+v, want %+v", arrivals[0].Since, want)
	}
	if d.To != b.holder || d.Mover != b.holder.Addr || d.Ticket.IsZero() {
		t.Errorf("the source is told %+v", d)
	}
	if d.Identity != "dns:b" || arrivals[0].Identity != "dns:a" {
		t.Errorf("the source is told that the target is %q, and the target that the source is %q", d.Identity, arrivals[0].Identity)
	}
	a.say()
	if got := a.read(); len(got.Offers) != 1 || got.Offers[0].Range != leasehold.All || got.Offers[0].Fresh {
		t.Errorf("the source is offered %+v, want all that it has", got.Offers)
	}
	l.wantChanges(1)
}

// Unless both can move state the lease is recalled, as in the paper.
func TestRecallUnlessBothMoveState(t *testing.T) {
	for _, c := range []struct {
		name                 string
		sourceMoves, toMoves bool
	}{{"neither", false, false}, {"the source cannot", false, true}, {"the target cannot", true, false}} {
		t.Run(c.name, func(t *testing.T) {
			l, p := newMovingLeader(t, "aaa")
			for _, o := range []struct {
				name  leasehold.OwnerID
				moves bool
			}{{"a", c.sourceMoves}, {"b", c.toMoves}} {
				if o.moves {
					l.mover(o.name)
				} else {
					l.join(o.name)
				}
			}
			p.give("aba")
			since := len(l.log)
			l.rethink()
			l.wantChanges(since, "lost", "granted")
			l.wantHolder(1<<56, "b", "in the end")
		})
	}
}

// An owner that cannot move state and joins others that can is worth a warning. One
// among its like is not.
func TestOwnerWithoutAMoverIsNoted(t *testing.T) {
	l, _ := newMovingLeader(t, "aaa")
	l.join("a")
	l.join("b")
	l.mover("c")
	l.mover("d")
	if n := l.noted(manager.NoteNoMover); n != 0 {
		t.Errorf("it is noted %d times, want none", n)
	}
	e := l.join("e")
	l.renew(20*time.Second, l.owners...)
	if n := l.noted(manager.NoteNoMover); n != 1 {
		t.Errorf("that %s cannot move state is noted %d times, want 1", e.holder.Owner, n)
	}
}

// A move that goes well is one change of the table, which is no loss. The source
// hears that it is not recorded until it is; the target gets the lease with the
// ticket.
func TestMoveIsRecorded(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	since := len(l.log)
	l.holdUp = true
	a.completes(d)
	if l.pending == nil {
		t.Fatal("nothing is to be recorded")
	}
	want := []table.Change{{LSN: 2, Kind: table.Moved, Range: cell(1, 2), Generation: 2, Holder: b.holder, From: a.holder, Reason: table.Rebalance}}
	if diff := cmp.Diff(want, l.pending.Changes); diff != "" {
		t.Fatalf("what is to be recorded (-want +got):\n%s", diff)
	}
	a.read()
	a.wantDepartures(cell(1, 2)) // it is to repeat itself
	for _, r := range b.unread {
		if len(r.Offers) > 0 {
			t.Errorf("the target is offered %v before that is recorded", r.Offers)
		}
	}
	l.commit()
	l.wantChanges(since, "moved")
	a.read()
	a.wantDepartures()
	offers := b.read().Offers
	if want := []protocol.Offer{{Lease: leasehold.Lease{Range: cell(1, 2), Generation: 2}, Fresh: true, Ticket: d.Ticket}}; cmp.Diff(want, offers) != "" {
		t.Errorf("the target is offered %+v, want %+v", offers, want)
	}
	b.say()
	if offers := b.read().Offers; offers[0].Fresh || !offers[0].Ticket.IsZero() {
		t.Errorf("what the target has confirmed is offered as %+v", offers[0])
	}
}

// A target that follows an answer too late to take the lease still has the state, and says so: it is offered the
// lease again. If it does not say so, it has refused it.
func TestLateTargetIsOfferedTheLeaseAgain(t *testing.T) {
	for _, has := range []bool{true, false} {
		l, _, a, b, d := begunMove(t)
		if has {
			b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
		}
		a.completes(d)
		since := len(l.log)
		b.read()
		b.leases = nil // it was too late
		b.say()
		if !has {
			l.wantChanges(since, "lost", "granted")
			continue
		}
		l.wantChanges(since)
		if o := b.read().Offers; len(o) != 1 || !o[0].Fresh || o[0].Ticket != d.Ticket {
			t.Errorf("it is offered %+v", o)
		}
	}
}

// What the source says of a move is all that counts: if it lacks the lease and
// does not say that the target has the state, that is lost, once.
func TestLostUnlessDone(t *testing.T) {
	for name, report := range map[string]func(*paperOwner, protocol.Departure){
		"it says nothing":             func(*paperOwner, protocol.Departure) {},
		"it says that it copies":      func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveCopying) },
		"it says that it has stopped": func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveStopped) },
		"it says that it has failed":  func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveFailed) },
		"it says that another is done": func(o *paperOwner, d protocol.Departure) {
			d.Range = cell(2, 3)
			o.reports(d, protocol.MoveDone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, a, _, d := begunMove(t)
			since := len(l.log)
			report(a, d)
			a.letsGo(d.Range)
			a.say()
			if got := l.changesSince(since); len(got) == 0 || got[0] != "lost" || slices.Contains(got, "moved") {
				t.Errorf("what is recorded is %v", got)
			}
		})
	}
}

// A part of a lease may have moved while another was lost.
func TestPartlyDone(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	since := len(l.log)
	a.reports(d, protocol.MoveDone)
	a.letsGo(leasehold.All)
	l.holdUp = true
	a.say()
	lost := map[leasehold.Range]bool{}
	for _, c := range l.pending.Changes {
		switch {
		case c.Kind == table.Vacated:
			lost[c.Range] = true
		case c.Kind == table.Moved && c.Range != cell(1, 2):
			t.Errorf("%v is said to have moved", c.Range)
		}
	}
	if !lost[cell(0, 1)] || !lost[cell(2, 0)] || len(lost) != 2 {
		t.Errorf("what is lost is %v", lost)
	}
	l.commit()
	if n := len(l.changesSince(since)); n != 5 { // two losses, two grants, one move
		t.Errorf("%d changes are recorded", n)
	}
}

// If the owner that has the state is gone when the source lets go, it is lost.
func TestTargetIsGone(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	p.give("aaa")
	b.leave()
	l.settle()
	since := len(l.log)
	a.completes(d)
	if got := l.changesSince(since); l.noted(manager.NoteTargetGone) != 1 || slices.Contains(got, "moved") || got[0] != "lost" {
		t.Errorf("what is recorded is %v", got)
	}
}

// Whoever has only said hello cannot have been sent anything by this leader's
// leave, and is given nothing.
func TestTargetIsNoMember(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	c := l.newcomer("c")
	c.moving = &moving{}
	c.say()
	d.To = c.holder
	since := len(l.log)
	a.completes(d)
	if got := l.changesSince(since); l.noted(manager.NoteTargetGone) != 1 || slices.Contains(got, "moved") || got[0] != "lost" {
		t.Errorf("what is recorded is %v", got)
	}
}

// What a source says about a move is about the leases that it began with. What it
// has got since, and does not have, is lost.
func TestDoneIsNotAboutLaterLeases(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.completes(d)
	l.settle()
	p.give("aaa")
	l.rethink()
	b.completes(b.departures()[0]) // and back again
	b.forgets()
	since := len(l.log)
	a.read()
	a.letsGo(d.Range) // it does not have what came back, and still repeats itself
	a.say()
	if got := l.changesSince(since); slices.Contains(got, "moved") || len(got) == 0 || got[0] != "lost" {
		t.Errorf("what is recorded is %v", got)
	}
}

// If it goes before that can be recorded, it is lost, and was never moved.
func TestTargetGoesBeforeItIsRecorded(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	since := len(l.log)
	l.holdUp = true
	p.give("ab.")
	l.rethink() // a gives cell 2 back: a batch is under way
	if l.pending == nil {
		t.Fatal("nothing is under way")
	}
	a.completes(d)
	b.leave()
	p.give("aa.")
	l.holdUp = false
	l.commit()
	l.settle()
	l.wantChanges(since, "lost", "lost", "granted")
}

// If it goes while that is being recorded, it has moved, and is lost then.
func TestTargetGoesWhileItIsRecorded(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	since := len(l.log)
	l.holdUp = true
	a.completes(d)
	b.leave()
	l.holdUp = false
	l.commit()
	l.settle()
	if got := l.changesSince(since); got[0] != "moved" || got[1] != "lost" || slices.Contains(got[2:], "lost") {
		t.Errorf("what is recorded is %v", got)
	}
}

// A source that leaves with its last word has handed over what it says.
func TestLastWord(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.leases = nil
	l.holdUp = true
	a.leave()
	kinds := map[leasehold.Range]table.Kind{}
	for _, c := range l.pending.Changes {
		kinds[c.Range] = c.Kind
	}
	if kinds[cell(1, 2)] != table.Moved || kinds[cell(0, 1)] != table.Vacated || kinds[cell(2, 0)] != table.Vacated {
		t.Errorf("what is recorded is %v", l.pending.Changes)
	}
	a.wantGoodbyes(0, "before the commit")
	l.commit()
	a.wantGoodbyes(1, "after the commit")
}

// What the plan no longer wants is cancelled: both are told by its absence.
func TestMoveIsCancelled(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	p.give("aaa")
	l.rethink()
	a.wantDepartures()
	if n := len(b.moving.last.Arrivals); n != 0 || l.noted(manager.NoteMoveCancelled) != 1 {
		t.Errorf("the target is told of %d arrivals", n)
	}
	if s := l.machine.Sizes(); s.Moves != 0 || s.Backlog != 0 {
		t.Errorf("there are %+v", s)
	}
}

// A source that loses a part of what it sends need not go on with it.
func TestMoveEndsWithItsLease(t *testing.T) {
	l, _, a, b, _ := begunMove(t)
	b.leave()
	l.settle()
	a.wantDepartures()
	_, _, a, _, d := begunMove(t)
	a.letsGo(leasehold.Range{Start: d.Range.Start, Limit: d.Range.Start + 5})
	a.say()
	a.read()
	for _, still := range a.departures() {
		if still.Ticket == d.Ticket {
			t.Error("it is to go on with a range that it has lost a part of")
		}
	}
}

// A move that fails leaves the range where it is, also in the plan: it is not
// tried again before the policy is asked.
func TestFailedMoveStays(t *testing.T) {
	l, p, a, _, d := begunMove(t)
	since := len(l.log)
	a.reports(d, protocol.MoveFailed)
	a.say()
	a.read()
	a.wantDepartures()
	a.forgets()
	l.renew(5*time.Minute, l.owners...)
	a.wantDepartures()
	l.wantChanges(since)
	if l.noted(manager.NoteMoveFailed) != 1 {
		t.Errorf("it is noted %d times", l.noted(manager.NoteMoveFailed))
	}
	l.rethink()
	a.wantDepartures(cell(1, 2))
	if owner := p.last().Current.OwnerAt(1 << 56); owner != "a" {
		t.Errorf("the policy is told that %q is to have it", owner)
	}
}

// Leases that lie side by side and go to one owner go together, and arrive as
// one.
func TestLeasesMoveTogether(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	p.give("a.......")
	a := l.mover("a")
	for _, owners := range []string{"aa......", "aaa.....", "aaaa...."} {
		p.give(owners)
		l.rethink()
	}
	b := l.mover("b")
	p.give("abbb....")
	since := len(l.log)
	l.rethink()
	a.wantDepartures(cell(1, 4))
	l.holdUp = true
	a.completes(a.departures()[0])
	if got := a.read().Departures; len(got) != 1 {
		t.Errorf("until that is recorded it is reminded of %v: of a ticket, once", got)
	}
	l.commit()
	l.settle()
	l.wantChanges(since, "moved")
	if len(b.leases) != 1 || b.leases[0].Range != cell(1, 4) {
		t.Errorf("the target has %v", b.leases)
	}
}
