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

// The source of a move dies before it has released the range: the state is lost, whatever the target has. The target
// gets the range without a ticket, so it starts without state.
func TestSourceDies(t *testing.T) {
	for name, state := range map[string]protocol.MoveState{"while it copies": protocol.MoveCopying, "after it has stopped": protocol.MoveStopped} {
		t.Run(name, func(t *testing.T) {
			l, _, a, b, d := begunMove(t)
			a.reports(d, state)
			a.send()
			l.settle()
			recorded := len(l.log)
			l.wantOutcome(a.dies(), protocol.DeathRecorded)
			l.wantLost(recorded, leasehold.All)
			l.wantHolder(d.Range.Start, "b", "after the death of the source")
			l.settle()
			if r := b.moving.last; len(r.Arrivals) > 0 || len(r.Offers) != 1 || !r.Offers[0].Ticket.IsZero() {
				t.Errorf("the target is sent %+v", r)
			}
		})
	}
}

// The source dies after it has released the range, which is not recorded: the state is at the target.
func TestSourceDiesAfterTheMove(t *testing.T) {
	l, _, a, b, d := begunMove(t)
	l.holdUp = true
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	a.send()
	recorded := len(l.log)
	l.wantOutcome(a.dies())
	l.commit()
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
	l.wantLost(recorded, cell(0, 1), cell(2, 0))
	l.wantHolder(d.Range.Start, "b", "the state is there")
	if got := l.changesSince(recorded); got[0] != "moved" {
		t.Errorf("recorded %v", got)
	}
	if offers := b.read().Offers; !slices.ContainsFunc(offers, func(o protocol.Offer) bool { return o.Ticket == d.Ticket }) {
		t.Errorf("the target is offered %v", offers)
	}
}

// The same in the next term: the source has reported the move only once, without an acknowledgement of this leader.
func TestSourceDiesAfterTheMoveAndTheLeader(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	next := l.inherit(p, a, b)
	a.send()
	a.unread = nil
	recorded := len(next.log)
	next.wantOutcome(a.dies(), protocol.DeathRecorded)
	next.wantLost(recorded, cell(0, 1), cell(2, 0))
	next.wantHolder(d.Range.Start, "b", "the state is there")
	if got := next.changesSince(recorded); !slices.Contains(got, "moved") {
		t.Errorf("recorded %v", got)
	}
}

// The target of a move dies: the move ends, and the source keeps serving. If the source has released the range, its
// state is lost.
func TestTargetDies(t *testing.T) {
	for _, state := range []protocol.MoveState{protocol.MoveCopying, protocol.MoveStopped, protocol.MoveDone} {
		l, p, a, b, d := begunMove(t)
		p.give("aaa")
		recorded := len(l.log)
		if state != protocol.MoveDone {
			a.reports(d, state)
			a.send()
			l.settle()
		}
		l.wantOutcome(b.dies(), protocol.DeathRecorded)
		if state == protocol.MoveDone { // its report follows the notice
			a.read()
			a.reports(d, state)
			a.releases(d.Range)
			a.send()
		}
		l.settle()
		a.wantDepartures()
		l.wantHolder(d.Range.Start, "a", "after the death of the target")
		if lost := slices.Contains(l.changesSince(recorded), "lost"); lost != (state == protocol.MoveDone) {
			t.Errorf("state %d: recorded %v", state, l.log[recorded:])
		}
	}
}

// The target dies while its lease is committed.
func TestTargetDiesBeforeItGetsTheLease(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	p.give("aaa")
	l.holdUp = true
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	a.send()
	recorded := len(l.log)
	l.wantOutcome(b.dies())
	l.commit()
	l.commit()
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
	l.wantLost(recorded, d.Range)
	l.wantHolder(d.Range.Start, "a", "afterwards")
}

// A dead target does not return in the report of a source, whatever term has begun.
func TestDeadTargetStaysDead(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	p.give("aaa")
	next := l.inherit(p, a, b)
	b.send()
	next.wantOutcome(b.dies(), protocol.DeathRecorded)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	a.returns()
	next.settle()
	next.wantHolder(d.Range.Start, "a", "after a report of a move to a dead target")
}

// A dead source's state may be with a target that returns: until that is clear, the notice is not decided.
func TestDeathAwaitsATarget(t *testing.T) {
	for _, returns := range []bool{true, false} {
		next, a, b, moved, _, recorded := awaitedMove(t)
		next.advance(5 * time.Second)
		a.send()
		n, got := noticeOf(a.holder), a.dies()
		next.wantOutcome(got, protocol.DeathUndecided)
		next.wantChanges(recorded)
		for range 70 { // of a second: until the earlier session of the target's name has expired
			next.advance(time.Second)
			if returns {
				b.send()
				b.obey()
			}
			if got = next.report(n); got[0] != protocol.DeathUndecided {
				break
			}
		}
		next.wantOutcome(got, protocol.DeathRecorded)
		arrived := slices.ContainsFunc(next.log[recorded:], func(c table.Change) bool { return c.Kind == table.Moved && c.Range == moved })
		if arrived != returns {
			t.Errorf("target returns %t: recorded %v", returns, next.log[recorded:])
		}
	}
}

// A leader fails before the commit: the notice is repeated to its successor, which knows the hash from the table and
// does not wait for leases of earlier leaders either.
func TestDeathAcrossLeaders(t *testing.T) {
	first := newPaperLeader(t)
	_, b := first.join("a"), first.join("b")
	first.holdUp = true
	first.wantOutcome(b.dies())

	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: slices.Clone(first.log)})
	recorded := len(l.log)
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathRecorded)
	l.wantLost(recorded, leasehold.Range{Start: middle})
	l.wantHolder(middle, "a", "a is a member of the last term")

	// The same after the commit.
	l = newPaperSuccessor(t, 3, &storage.State{Term: 3, Changes: slices.Clone(l.log)})
	recorded = len(l.log)
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUnknown)
	l.wantChanges(recorded)
}

// A leader of a version without hashes has stored the session. Its own request announces the hash to the next one.
func TestHashIsAnnouncedLater(t *testing.T) {
	first := newPaperLeader(t)
	a, b := first.join("a"), first.join("b")
	log := slices.Clone(first.log)
	for i := range log {
		log[i].Holder = log[i].Holder.WithoutDeathHash()
	}
	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: log})
	l.owners = []*paperOwner{a, b}
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUnknown)
	l.wantHolder(middle, "b", "without a hash")
	a.leader, b.leader = l, l
	b.send()
	l.wantOutcome(b.dies(), protocol.DeathRecorded)
	l.wantHolder(middle, "a", "with a hash")
}

// Only the session itself announces its hash: not the source of a move to it.
func TestHashIsNotOfAnotherOwner(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	victim := *b.holder
	victim.DeathHash = table.DeathToken{'e', 'v', 'i', 'l'}.Hash()
	d.To = &victim
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	next := l.inherit(p, a, b)
	a.returns()
	next.settle()
	next.wantHolder(d.Range.Start, "b", "after the move")
	n := noticeOf(b.holder)
	n.Token = table.DeathToken{'e', 'v', 'i', 'l'}
	next.wantOutcome(next.report(n), protocol.DeathUnknown)
	b.send()
	next.wantOutcome(next.report(n), protocol.DeathRefused)
	next.wantOutcome(b.dies(), protocol.DeathRecorded)
}

// A leader that cannot exclude a restored store grants nothing, and the lost history may have given the range to
// another owner: the notice is decided after the wait.
func TestDeathUnderAnUncertainLeader(t *testing.T) {
	first := newPaperLeader(t)
	a, b := first.join("a"), first.join("b")
	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: slices.Clone(first.log)}, func(c *manager.Config) { c.Takeover.Uncertain = true })
	l.owners = []*paperOwner{a}
	a.leader = l
	recorded := len(l.log)
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUndecided)
	l.keepAlive(paperHold-time.Second, a)
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUndecided)
	l.wantHolder(middle, "b", "while the leader is uncertain")
	l.wantChanges(recorded)
	l.keepAlive(2*time.Second, a)
	if got := l.report(noticeOf(b.holder)); len(got) != 1 || got[0] == protocol.DeathUndecided {
		t.Errorf("after the wait the reply is %v", got)
	}
	l.wantHolder(middle, "a", "after the wait")
}

// Evidence that history was lost: the notice waits for it to be stored, and the range for the gap.
func TestDeathAfterEvidence(t *testing.T) {
	first := newPaperLeader(t)
	a, b := first.join("a"), first.join("b")
	l := newPaperSuccessor(t, 2, &storage.State{Term: 2, Changes: slices.Clone(first.log)}, func(c *manager.Config) { c.Takeover.Clock = 1 << 40 })
	l.owners = []*paperOwner{a}
	a.leader, l.holdUp = l, true
	a.leases = []leasehold.Lease{{Range: leasehold.Range{Limit: middle}, Generation: 99}} // the table never had it
	a.send()
	if l.noted(manager.NoteForgotten) == 0 {
		t.Fatal("no evidence")
	}
	l.wantOutcome(l.report(noticeOf(b.holder)), protocol.DeathUndecided) // only this leader has the evidence
	l.holdUp = false
	l.commit()
	l.wantOutcome(l.report(noticeOf(b.holder)))
	l.wantHolder(middle, "b", "before the gap")
	l.advance(paperHold + time.Second)
	l.wantOutcome(l.outcomes(), protocol.DeathRecorded)
}

// A diskless leader has the hash from the census.
func TestDeathAfterACensus(t *testing.T) {
	s, a, b := newSurvey(t), *poolHolder(1), *poolHolder(2)
	b.DeathHash = tokenOf(b.Session).Hash()
	s.confirm(&a, held(0, 4, 11))
	s.confirm(&b, held(4, 0, 12))
	m := s.lead()
	l := &paperLeader{t: t, machine: m, now: s.now}
	l.advance(0)
	n := noticeOf(&b)
	n.Namespace = poolNamespace
	l.wantOutcome(l.report(n), protocol.DeathRecorded)
	l.wantHolder(cell(4, 0).Start, a.Owner, "after the death")
}
