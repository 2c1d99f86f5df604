package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// The reason for a range to go from a to b is part of the move's status, and recorded with the change.
func TestReasonsOfMoves(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(l *paperLeader, p *plan, a, b *paperOwner)
		want table.Reason
	}{
		"rebalance ordered": {func(l *paperLeader, p *plan, _, _ *paperOwner) { p.give("aba"); l.replan() }, table.Rebalance},
		"a third joins":     {func(l *paperLeader, p *plan, _, _ *paperOwner) { p.give("aba"); l.mover("c") }, table.Joined},
		"move ordered":      {func(l *paperLeader, _ *plan, _, _ *paperOwner) { l.must(manager.OrderMove, "b", cell(1, 2)) }, table.Ordered},
		"source drained": {func(l *paperLeader, p *plan, _, _ *paperOwner) {
			p.give("aba")
			l.must(manager.OrderDrain, "a", leasehold.Range{})
		}, table.Drain},
		"source leaving": {func(_ *paperLeader, p *plan, a, _ *paperOwner) { p.give("aba"); a.parts() }, table.Leaving},
		"source leaving and drained": {func(l *paperLeader, p *plan, a, _ *paperOwner) {
			a.parts()
			p.give("aba")
			l.must(manager.OrderDrain, "a", leasehold.Range{})
		}, table.Leaving},
		"another owner drained": {func(l *paperLeader, p *plan, _, _ *paperOwner) {
			l.mover("c")
			p.give("aba")
			l.must(manager.OrderDrain, "c", leasehold.Range{})
		}, table.Drain},
		"loads": {func(l *paperLeader, p *plan, a, _ *paperOwner) {
			p.give("aba")
			a.loaded(nil, partition.Cell{Range: cell(0, 3), Rate: 900})
			l.untilAsked(p)
		}, table.Load},
		"new configuration": {func(l *paperLeader, p *plan, _, _ *paperOwner) {
			p.give("aba")
			l.step(manager.Reconfigured{Config: manager.Config{Timing: protocol.PaperTiming(), Policy: p}})
			l.settle()
		}, table.Configured},
		"ordered move, and a later plan for another reason": {func(l *paperLeader, p *plan, _, _ *paperOwner) {
			l.must(manager.OrderMove, "b", cell(1, 2))
			p.give("aba")
			l.mover("c")
		}, table.Ordered},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := newMovingLeader(t, "aaa")
			a, b := l.mover("a"), l.mover("b")
			c.do(l, p, a, b)
			moves := l.machine.Moves(l.now, 9)
			if len(moves) == 0 || moves[0].Range != cell(1, 2) || moves[0].Reason != c.want {
				t.Fatalf("moves in progress: %+v, want %v for the reason %d", moves, cell(1, 2), c.want)
			}
			a.completes(a.departures()[0])
			l.settle()
			if last := l.log[len(l.log)-1]; last.Kind != table.Moved || last.Reason != c.want {
				t.Errorf("the last change is %v, for the reason %d, want a move for %d", &last, last.Reason, c.want)
			}
		})
	}
}

// The first owner gets all keys because it joined; the ranges of an owner that is gone go to another for that
// reason.
func TestReasonsOfGrants(t *testing.T) {
	l, p := newMovingLeader(t, "ab")
	a := l.join("a")
	if len(l.log) == 0 || l.log[0].Reason != table.Joined {
		t.Fatalf("the first changes are %+v", l.log)
	}
	l.join("b")
	p.give("bb")
	since := len(l.log)
	a.leave()
	l.settle()
	granted := 0
	for _, c := range l.log[since:] {
		switch {
		case c.Kind == table.Granted && c.Reason == table.Gone:
			granted++
		case c.Kind == table.Vacated && c.Reason == table.NoReason:
		default:
			t.Errorf("%v, for the reason %d", &c, c.Reason)
		}
	}
	if granted == 0 {
		t.Error("nothing was granted")
	}
}

// A new session of an owner gets the ranges of its predecessor because it joined, not for the reason why the predecessor
// got them.
func TestReasonsOfSuccessors(t *testing.T) {
	l, p := newMovingLeader(t, "ab")
	a, b := l.join("a"), l.join("b")
	p.give("bb")
	a.leave()
	l.settle()
	since := len(l.log)
	second := l.introduce("b")
	l.keepAlive(2*time.Minute, second)
	l.settle()
	granted := 0
	for _, c := range l.log[since:] {
		if c.Kind == table.Granted && c.Holder.Session == second.holder.Session {
			granted++
			if c.Reason != table.Joined {
				t.Errorf("%v, for the reason %d", &c, c.Reason)
			}
		}
	}
	if granted == 0 || len(b.leases) == 0 {
		t.Errorf("no grant to the second session: %v", l.log[since:])
	}
}

func TestReasonOfSeams(t *testing.T) {
	l, _, _ := patched(t)
	moves := l.machine.Moves(l.now, 9)
	if len(moves) != 1 || moves[0].Reason != table.Joint {
		t.Errorf("%+v, want one move that merges leases", moves)
	}
}

// The number of reasons is bounded by the number of ranges.
func TestReasonsAreBounded(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	l.join("a")
	l.join("b")
	for i := range 64 {
		l.must(manager.OrderMove, []leasehold.OwnerID{"a", "b"}[i%2], cell(2*i+1, 2*i+2))
		if i%2 == 0 {
			p.give("a")
			l.replan()
		}
	}
	if sizes := l.machine.Sizes(); sizes.Reasons > 2*sizes.Planned+1 {
		t.Errorf("there are reasons for %d ranges, and %d are planned", sizes.Reasons, sizes.Planned)
	}
}
