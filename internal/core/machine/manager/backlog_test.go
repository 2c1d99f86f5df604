package manager_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// A new leader takes an owner that it has not heard for one that can move state,
// and waits for a source that it does not know well enough. If it turns out
// meanwhile that the target cannot, the range is recalled: nobody else would look
// at it again.
func TestWaitingMoveToAnOwnerThatCannotMoveState(t *testing.T) {
	old, p := newMovingLeader(t, "aab")
	a, b := old.mover("a"), old.join("b")
	old.settle()
	p.give("abb")
	next := old.inherit(p, a, b)
	a.say()
	a.read()
	if s := next.machine.Sizes(); s.Backlog != 1 {
		t.Fatalf("%d moves wait, want that of cell 1", s.Backlog)
	}
	b.returns()
	a.say()
	next.renew(10*time.Second, a, b)
	next.wantHolder(1<<56, "b", "when both have been heard")
}

// Leases that lie side by side become one under a plan that leaves them where they
// are, although there was nothing to be gained under the plan before, and the
// table is still the same.
func TestSeamsAreMendedUnderAnotherPlan(t *testing.T) {
	l, p, a := patched(t)
	l.mover("b")
	p.give("bbbbbb.")
	l.step(manager.Order{Kind: manager.OrderDrain, Owner: "a"})
	l.rethink()
	a.wantDepartures(cell(0, 6))
	since := len(l.log)
	a.reports(a.departures()[0], protocol.MoveFailed)
	a.say() // now it has nothing to send for a while, and nothing that it is to keep
	l.settle()
	a.wantDepartures()

	a.forgets()
	p.give("aaaaaa.")
	l.step(manager.Order{Kind: manager.OrderUndrain, Owner: "a"})
	l.rethink()
	l.renew(30*time.Second, l.owners...)
	l.wantChanges(since)
	a.wantDepartures(cell(0, 6))
	if d := a.departures()[0]; d.To != a.holder {
		t.Errorf("it is told to send %+v", d)
	}
}
