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

// The target of a move is the second session of its name. The leader that accepted it failed before it recorded the
// end of the first one, so the table still has leases of that. A successor does not take the target for gone: the
// source's lease stays as it is, and the source goes on reporting the move, until the target returns.
func TestSuccessorAwaitsATargetBehindAnEarlierSession(t *testing.T) {
	for _, returns := range []bool{true, false} {
		l, p, a, b, d := begunMove(t)
		since := b.moving.last.Arrivals[0].Since
		first := *b.holder
		first.Session = leasehold.Session{99}
		elsewhere := cell(4, 5)
		l.log = append(l.log,
			table.Change{LSN: 2, Kind: table.Vacated, Range: elsewhere, Generation: 1, Holder: a.holder, Cause: leasehold.CauseReleased},
			table.Change{LSN: 3, Kind: table.Granted, Range: elsewhere, Generation: 2, Holder: &first})
		a.releases(elsewhere)
		a.reports(d, protocol.MoveDone)
		a.releases(d.Range)
		b.moving.imports = []protocol.Import{importOf(d, since)}
		next := l.inherit(p, a, b)
		recorded := len(next.log)
		a.returns()
		next.settle()
		next.wantChanges(recorded)
		a.wantDepartures(d.Range)
		if !returns {
			next.renew(80*time.Second, a)
			if got := next.changesSince(recorded); len(got) == 0 || got[0] != "lost" {
				t.Errorf("the target never returns, and %v is recorded", got)
			}
			continue
		}
		b.send()
		next.renew(80*time.Second, a, b)
		moved := false
		for _, c := range next.log[recorded:] {
			moved = moved || c.Kind == table.Moved && c.Holder.Session == b.holder.Session && c.Range == d.Range
			if c.Kind == table.Vacated && c.Range.Overlaps(d.Range) {
				t.Errorf("%v is recorded, and the target has the state", c)
			}
		}
		if !moved {
			t.Errorf("the move is not recorded: %v", next.log[recorded:])
		}
	}
}

// A leader that cannot exclude a restored store sends no orders while it waits, and its replies are marked as
// collecting: the target of a move keeps the state, and the source continues to report the move.
func TestUndecidedLeaderGivesNoOrders(t *testing.T) {
	l, p, a, b, d := begunMove(t)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	b.moving.imports = []protocol.Import{importOf(d, b.moving.last.Arrivals[0].Since)}
	state := &storage.State{Term: 2, Changes: slices.Clone(l.log)}
	next := newPaperSuccessor(t, 2, state, func(c *manager.Config) { c.Policy, c.Takeover.Uncertain = p, true })
	next.owners = []*paperOwner{a, b}
	for _, o := range []*paperOwner{a, b} {
		o.leader, o.unread = next, nil
		o.send()
		if r := o.read(); !r.Collecting || len(r.Departures)+len(r.Arrivals) > 0 {
			t.Errorf("%s is sent %+v", o.holder.Owner, r)
		}
	}
	next.renew(80*time.Second, a, b)
	moved := false
	for _, c := range next.log {
		moved = moved || c.Kind == table.Moved && c.Holder == b.holder
	}
	if r := a.moving.last; r.Collecting || !moved {
		t.Errorf("after the wait the source is sent %+v, and %v is recorded", r, next.log)
	}
}

// Once such a leader has decided, it recalls ranges at once. Owners have not acknowledged its last messages, which
// gave no orders: they acknowledge these with the next renewal.
func TestDecidedLeaderSendsOrdersAtOnce(t *testing.T) {
	l, p := newMovingLeader(t, "aba")
	a, b := l.join("a"), l.join("b")
	l.renew(10*time.Second, a, b)
	p.give("aab")
	state := &storage.State{Term: 2, Changes: slices.Clone(l.log)}
	next := newPaperSuccessor(t, 2, state, func(c *manager.Config) { c.Policy, c.Takeover.Uncertain = p, true })
	next.owners = []*paperOwner{a, b}
	for _, o := range []*paperOwner{a, b} {
		o.leader, o.unread = next, nil
	}
	for range 4 {
		next.advance(15 * time.Second)
		for _, o := range []*paperOwner{a, b} {
			o.send()
			if r := o.read(); !r.Collecting {
				t.Fatalf("%s is sent %+v", o.holder.Owner, r)
			}
		}
	}
	next.advance(10 * time.Second)
	if r := a.read(); r.Collecting || len(r.Offers) != 1 {
		t.Errorf("the owner is sent %+v, want a recall of the range for b", r)
	}
}

// awaitedMove returns a successor that waits for the target of a move behind an earlier session of its name. The source
// has released the range of the move, and the adjacent one in the same lease.
func awaitedMove(t *testing.T) (next *paperLeader, a, b *paperOwner, moved, rest leasehold.Range, recorded int) {
	t.Helper()
	l, p, a, b, d := begunMove(t)
	since := b.moving.last.Arrivals[0].Since
	first := *b.holder
	first.Session = leasehold.Session{99}
	elsewhere, rest := cell(4, 5), cell(0, 1)
	l.log = append(l.log,
		table.Change{LSN: 2, Kind: table.Vacated, Range: elsewhere, Generation: 1, Holder: a.holder, Cause: leasehold.CauseReleased},
		table.Change{LSN: 3, Kind: table.Granted, Range: elsewhere, Generation: 2, Holder: &first})
	a.releases(elsewhere)
	a.reports(d, protocol.MoveDone)
	a.releases(d.Range)
	a.releases(rest)
	b.moving.imports = []protocol.Import{importOf(d, since)}
	next = l.inherit(p, a, b)
	return next, a, b, d.Range, rest, len(next.log)
}

// Only the part of a lease whose state is with such a target stays in the table. The rest is freed at once, and not
// offered to the source again.
func TestRestOfAnAwaitedLeaseIsFreed(t *testing.T) {
	next, a, _, moved, rest, recorded := awaitedMove(t)
	a.returns()
	next.settle()
	freed := false
	for _, c := range next.log[recorded:] {
		if c.Kind == table.Vacated && c.Range.Overlaps(moved) {
			t.Errorf("%v is recorded, and its target may return", c)
		}
		freed = freed || c.Kind == table.Vacated && c.Range == rest
	}
	if !freed {
		t.Errorf("%v is not freed: %v", rest, next.log[recorded:])
	}
	a.wantDepartures(moved)
}

// A source that leaves is not answered before the target has returned or its time is over: the state is not lost.
func TestGoodbyeWaitsForAnAwaitedTarget(t *testing.T) {
	next, a, b, moved, _, recorded := awaitedMove(t)
	a.returns()
	next.settle()
	next.advance(time.Second) // later than the takeover
	a.send()
	next.settle()
	a.leave()
	for _, c := range next.log[recorded:] {
		if c.Kind == table.Vacated && c.Range.Overlaps(moved) {
			t.Errorf("%v is recorded, and its target may return", c)
		}
	}
	for range 160 { // it repeats the request
		next.advance(time.Second / 2)
		b.send()
		a.leave()
		b.obey()
	}
	done := false
	for _, c := range next.log[recorded:] {
		done = done || c.Kind == table.Moved && c.Holder.Session == b.holder.Session && c.Range == moved
	}
	if !done {
		t.Errorf("the move is not recorded: %v", next.log[recorded:])
	}
}
