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

// begunMove returns a leader that has ordered a move of cell 1 from a to b, after its takeover is complete.
func begunMove(t *testing.T, options ...func(*manager.Config)) (l *paperLeader, p *plan, a, b *paperOwner, d protocol.Departure) {
	t.Helper()
	l, p = newMovingLeader(t, "aaa", options...)
	a, b = l.mover("a"), l.mover("b")
	l.renew(70*time.Second, a, b)
	p.give("aba")
	l.replan()
	a.wantDepartures(cell(1, 2))
	return l, p, a, b, a.departures()[0]
}

// If both owners can move state, nothing is recalled: the source keeps the lease, and both get the move under one
// ticket.
func TestMoveInsteadOfRecall(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	arrivals := b.moving.last.Arrivals
	if len(arrivals) != 1 || arrivals[0].Ticket != d.Ticket || arrivals[0].Range != d.Range || arrivals[0].From != a.holder {
		t.Errorf("the target got %+v", arrivals)
	}
	if want := (protocol.Since{LSN: 1, Newest: 1}); arrivals[0].Since != want {
		t.Errorf("the target's move began at %+v, want %+v", arrivals[0].Since, want)
	}
	if d.To != b.holder || d.Mover != b.holder.Addr || d.Ticket.IsZero() {
		t.Errorf("the source got %+v", d)
	}
	if d.Identity != "dns:b" || arrivals[0].Identity != "dns:a" {
		t.Errorf("the source got the identity %q of the target, and the target %q of the source", d.Identity, arrivals[0].Identity)
	}
	a.send()
	if got := a.read(); len(got.Offers) != 1 || got.Offers[0].Range != leasehold.All || got.Offers[0].Fresh {
		t.Errorf("the source is offered %+v, want all its leases", got.Offers)
	}
	l.wantChanges(1)
}

// Unless both can move state, the lease is recalled, as in the paper.
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
			l.replan()
			l.wantChanges(since, "lost", "granted")
			l.wantHolder(1<<56, "b", "after the recall")
		})
	}
}

// An owner that cannot move state and joins others that can is noted. Without others that can, it is not.
func TestOwnerWithoutAMoverIsNoted(t *testing.T) {
	l, _ := newMovingLeader(t, "aaa")
	l.join("a")
	l.join("b")
	l.mover("c")
	l.mover("d")
	if n := l.noted(manager.NoteNoMover); n != 0 {
		t.Errorf("noted %d times, want none", n)
	}
	e := l.join("e")
	l.renew(20*time.Second, l.owners...)
	if n := l.noted(manager.NoteNoMover); n != 1 {
		t.Errorf("that %s cannot move state is noted %d times, want 1", e.holder.Owner, n)
	}
}

// A completed move is one change of the table, and no loss. The source has the move in its replies until it is
// recorded; the target gets the lease with the ticket.
func TestMoveIsRecorded(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	since := len(l.log)
	l.holdUp = true
	a.completes(d)
	if l.pending == nil {
		t.Fatal("no commit")
	}
	want := []table.Change{{LSN: 2, Kind: table.Moved, Range: cell(1, 2), Generation: 2, Holder: b.holder, From: a.holder, Reason: table.Rebalance}}
	if diff := cmp.Diff(want, l.pending.Changes); diff != "" {
		t.Fatalf("batch (-want +got):\n%s", diff)
	}
	a.read()
	a.wantDepartures(cell(1, 2)) // it must repeat the report
	for _, r := range b.unread {
		if len(r.Offers) > 0 {
			t.Errorf("the target is offered %v before the commit", r.Offers)
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
	b.send()
	if offers := b.read().Offers; offers[0].Fresh || !offers[0].Ticket.IsZero() {
		t.Errorf("the confirmed lease is offered as %+v", offers[0])
	}
}

// A target whose reply comes too late to take the lease still has the state, and reports it: the lease is offered
// again. If it does not report the import, it has refused the lease.
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
		b.send()
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

// The source's report decides: if it lacks the lease and does not report that the target has the state, the state
// is lost, once.
func TestLostUnlessDone(t *testing.T) {
	for name, report := range map[string]func(*paperOwner, protocol.Departure){
		"no report":           func(*paperOwner, protocol.Departure) {},
		"reported as copying": func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveCopying) },
		"reported as stopped": func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveStopped) },
		"reported as failed":  func(o *paperOwner, d protocol.Departure) { o.reports(d, protocol.MoveFailed) },
		"another move reported as done": func(o *paperOwner, d protocol.Departure) {
			d.Range = cell(2, 3)
			o.reports(d, protocol.MoveDone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, _, a, _, d := begunMove(t)
			since := len(l.log)
			report(a, d)
			a.releases(d.Range)
			a.send()
			if got := l.changesSince(since); len(got) == 0 || got[0] != "lost" || slices.Contains(got, "moved") {
				t.Errorf("recorded changes: %v", got)
			}
		})
	}
}

// A part of a lease may have moved while another was lost.
func TestPartlyDone(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	since := len(l.log)
	a.reports(d, protocol.MoveDone)
	a.releases(leasehold.All)
	l.holdUp = true
	a.send()
	lost := map[leasehold.Range]bool{}
	for _, c := range l.pending.Changes {
		switch {
		case c.Kind == table.Vacated:
			lost[c.Range] = true
		case c.Kind == table.Moved && c.Range != cell(1, 2):
			t.Errorf("%v was recorded as moved", c.Range)
		}
	}
	if !lost[cell(0, 1)] || !lost[cell(2, 0)] || len(lost) != 2 {
		t.Errorf("recorded losses: %v", lost)
	}
	l.commit()
	if n := len(l.changesSince(since)); n != 5 { // two losses, two grants, one move
		t.Errorf("%d changes are recorded", n)
	}
}

// If the target is gone when the source releases the range, the state is lost.
func TestTargetIsGone(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	p.give("aaa")
	b.leave()
	l.settle()
	since := len(l.log)
	a.completes(d)
	if got := l.changesSince(since); l.noted(manager.NoteTargetGone) != 1 || slices.Contains(got, "moved") || got[0] != "lost" {
		t.Errorf("recorded changes: %v", got)
	}
}

// A session that is no member cannot be the target of a move of this leader, and gets nothing.
func TestTargetIsNoMember(t *testing.T) {
	l, _, a, _, d := begunMove(t)
	c := l.newcomer("c")
	c.moving = &moving{}
	c.send()
	d.To = c.holder
	since := len(l.log)
	a.completes(d)
	if got := l.changesSince(since); l.noted(manager.NoteTargetGone) != 1 || slices.Contains(got, "moved") || got[0] != "lost" {
		t.Errorf("recorded changes: %v", got)
	}
}

// A move report applies to the leases from before the move. A later lease that the source lacks is lost.
func TestDoneIsNotAboutLaterLeases(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.completes(d)
	l.settle()
	p.give("aaa")
	l.replan()
	b.completes(b.departures()[0]) // and back again
	b.stopsReporting()
	since := len(l.log)
	a.read()
	a.releases(d.Range) // it lacks the returned lease, and still repeats the report
	a.send()
	if got := l.changesSince(since); slices.Contains(got, "moved") || len(got) == 0 || got[0] != "lost" {
		t.Errorf("recorded changes: %v", got)
	}
}

// If the target is gone before the move is recorded, the state is lost, and no move is recorded.
func TestTargetGoesBeforeItIsRecorded(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	since := len(l.log)
	l.holdUp = true
	p.give("ab.")
	l.replan() // a releases cell 2: a batch is pending
	if l.pending == nil {
		t.Fatal("no batch is pending")
	}
	a.completes(d)
	b.leave()
	p.give("aa.")
	l.holdUp = false
	l.commit()
	l.settle()
	l.wantChanges(since, "lost", "lost", "granted")
}

// If the target is gone while the move is committed, the move is recorded, and then the loss.
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
		t.Errorf("recorded changes: %v", got)
	}
}

// The reports in the last request of a leaving source count.
func TestHandoverInLastRequest(t *testing.T) {
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
		t.Errorf("recorded changes: %v", l.pending.Changes)
	}
	a.wantGoodbyes(0, "before the commit")
	l.commit()
	a.wantGoodbyes(1, "after the commit")
}

// A move that the plan no longer requires is cancelled: it is missing in the next messages to both owners.
func TestMoveIsCancelled(t *testing.T) {
	l, p, a, b, _ := begunMove(t)
	p.give("aaa")
	l.replan()
	a.wantDepartures()
	if n := len(b.moving.last.Arrivals); n != 0 || l.noted(manager.NoteMoveCancelled) != 1 {
		t.Errorf("the target has %d arrivals", n)
	}
	if s := l.machine.Sizes(); s.Moves != 0 || s.Backlog != 0 {
		t.Errorf("moves: %+v", s)
	}
}

// A move ends when its source loses a part of the range.
func TestMoveEndsWithItsLease(t *testing.T) {
	l, _, a, b, _ := begunMove(t)
	b.leave()
	l.settle()
	a.wantDepartures()
	_, _, a, _, d := begunMove(t)
	a.releases(leasehold.Range{Start: d.Range.Start, Limit: d.Range.Start + 5})
	a.send()
	a.read()
	for _, still := range a.departures() {
		if still.Ticket == d.Ticket {
			t.Error("the move continues after the loss of a part of its range")
		}
	}
}

// After a failed move the range stays where it is, also in the plan: there is no retry before the next policy run.
func TestFailedMoveStays(t *testing.T) {
	l, p, a, _, d := begunMove(t)
	since := len(l.log)
	a.reports(d, protocol.MoveFailed)
	a.send()
	a.read()
	a.wantDepartures()
	a.stopsReporting()
	l.renew(5*time.Minute, l.owners...)
	a.wantDepartures()
	l.wantChanges(since)
	if l.noted(manager.NoteMoveFailed) != 1 {
		t.Errorf("noted %d times", l.noted(manager.NoteMoveFailed))
	}
	l.replan()
	a.wantDepartures(cell(1, 2))
	if owner := p.last().Current.OwnerAt(1 << 56); owner != "a" {
		t.Errorf("the policy has %q as the owner", owner)
	}
}

// Adjacent leases that go to one owner move together, and arrive as one.
func TestLeasesMoveTogether(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	p.give("a.......")
	a := l.mover("a")
	for _, owners := range []string{"aa......", "aaa.....", "aaaa...."} {
		p.give(owners)
		l.replan()
	}
	b := l.mover("b")
	p.give("abbb....")
	since := len(l.log)
	l.replan()
	a.wantDepartures(cell(1, 4))
	l.holdUp = true
	a.completes(a.departures()[0])
	if got := a.read().Departures; len(got) != 1 {
		t.Errorf("departures before the commit: %v, want the ticket once", got)
	}
	l.commit()
	l.settle()
	l.wantChanges(since, "moved")
	if len(b.leases) != 1 || b.leases[0].Range != cell(1, 4) {
		t.Errorf("the target has %v", b.leases)
	}
}
