package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A new leader assumes that an owner without a request can move state, and waits for a source without exact claims.
// If the target turns out not to move state, the range is recalled: no other event would trigger that.
func TestWaitingMoveToAnOwnerThatCannotMoveState(t *testing.T) {
	old, p := newMovingLeader(t, "aab")
	a, b := old.mover("a"), old.join("b")
	old.settle()
	p.give("abb")
	next := old.inherit(p, a, b)
	a.send()
	a.read()
	if s := next.machine.Sizes(); s.Backlog != 1 {
		t.Fatalf("%d waiting moves, want that of cell 1", s.Backlog)
	}
	b.returns()
	a.send()
	next.renew(10*time.Second, a, b)
	next.wantHolder(1<<56, "b", "after requests of both")
}

// Adjacent leases become one under a plan that leaves them where they are, although nothing could be merged under
// the last plan, and the table is unchanged.
func TestSeamsAreMergedUnderAnotherPlan(t *testing.T) {
	l, p, a := patched(t)
	l.mover("b")
	p.give("bbbbbb.")
	l.step(manager.Order{Kind: manager.OrderDrain, Owner: "a"})
	l.replan()
	a.wantDepartures(cell(0, 6))
	since := len(l.log)
	a.reports(a.departures()[0], protocol.MoveFailed)
	a.send() // now it has no moves for a while, and no leases to keep
	l.settle()
	a.wantDepartures()

	a.stopsReporting()
	p.give("aaaaaa.")
	l.step(manager.Order{Kind: manager.OrderUndrain, Owner: "a"})
	l.replan()
	l.renew(30*time.Second, l.owners...)
	l.wantChanges(since)
	a.wantDepartures(cell(0, 6))
	if d := a.departures()[0]; d.To != a.holder {
		t.Errorf("its departures are %+v", d)
	}
}
