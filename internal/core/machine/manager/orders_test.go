package manager_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/partition"
)

// must sends an order that must succeed.
func (l *paperLeader) must(kind manager.OrderKind, owner leasehold.OwnerID, r leasehold.Range) {
	l.t.Helper()
	if err := l.orders(kind, owner, r); err != nil {
		l.t.Fatal(err)
	}
}

// orders sends an order, and returns the error of the reply.
func (l *paperLeader) orders(kind manager.OrderKind, owner leasehold.OwnerID, r leasehold.Range) error {
	l.t.Helper()
	l.ordered = nil
	l.step(manager.Order{ID: 7, Kind: kind, Owner: owner, Range: r})
	if len(l.ordered) != 1 || l.ordered[0].ID != 7 {
		l.t.Fatalf("replies to the order: %+v", l.ordered)
	}
	l.settle()
	return l.ordered[0].Err
}

func TestOrdersRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		order manager.Order
		kind  leasehold.Kind
		want  string
	}{
		{"unknown kind", manager.Order{Kind: 9, Owner: "a"}, leasehold.ErrInvalid, `order "paper": unknown kind of order: 9`},
		{"no kind", manager.Order{Owner: "a"}, leasehold.ErrInvalid, `order "paper": unknown kind of order: 0`},
		{"drain an unknown owner", manager.Order{Kind: manager.OrderDrain, Owner: "x"}, leasehold.ErrNotFound, `order "x": no member has this owner name: "leasehold owner list" lists all members`},
		{"undrain without an owner", manager.Order{Kind: manager.OrderUndrain}, leasehold.ErrNotFound, `order: no member has this owner name: "leasehold owner list" lists all members`},
		{"move to a session that is no member", manager.Order{Kind: manager.OrderMove, Owner: "c", Range: cell(1, 2)}, leasehold.ErrNotFound, `order "c": no member has this owner name: "leasehold owner list" lists all members`},
		{"move an invalid range", manager.Order{Kind: manager.OrderMove, Owner: "a", Range: leasehold.Range{Start: 2, Limit: 1}}, leasehold.ErrInvalid, `order "0000000000000002-0000000000000001": is not a range`},
		{"move to a drained owner", manager.Order{Kind: manager.OrderMove, Owner: "b", Range: cell(1, 2)}, leasehold.ErrInvalid, `order "b": the owner is being drained and takes no ranges`},
		{"move to a leaving owner", manager.Order{Kind: manager.OrderMove, Owner: "d", Range: cell(1, 2)}, leasehold.ErrInvalid, `order "d": the owner is being drained and takes no ranges`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, _ := newMovingLeader(t, "aaa")
			l.mover("a")
			l.mover("b")
			d := l.mover("d")
			d.moving.parting = true
			d.send()
			l.newcomer("c").send()
			if err := l.orders(manager.OrderDrain, "b", leasehold.Range{}); err != nil {
				t.Fatal(err)
			}
			moves := l.machine.Sizes()
			got := l.orders(c.order.Kind, c.order.Owner, c.order.Range)
			if got == nil || got.Error() != c.want || !errors.Is(got, c.kind) {
				t.Errorf("the error is %v (%v), want %s (%v)", got, leasehold.KindOf(got), c.want, c.kind)
			}
			_, err := l.machine.Preview(l.now, c.order)
			if diff := cmp.Diff(c.want, errorText(err)); diff != "" {
				t.Errorf("error of the preview (-want +got):\n%s", diff)
			}
			if now := l.machine.Sizes(); now.Moves != moves.Moves || now.Backlog != moves.Backlog {
				t.Errorf("a refused order started moves: %+v, before %+v", now, moves)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A leader without authority refuses orders: the present leader would not have them.
func TestOrdersNeedAuthority(t *testing.T) {
	now := mono.Instant(time.Hour)
	m, err := manager.New(now, poolConfig(), 1, now.Add(3*time.Second), &storage.State{})
	if err != nil {
		t.Fatal(err)
	}
	m.Advance(now)
	for at, want := range map[mono.Instant]leasehold.Kind{now.Add(2 * time.Second): leasehold.Other, now.Add(3 * time.Second): leasehold.ErrUnavailable} {
		actions, _ := m.Step(at, manager.Order{Kind: manager.OrderRebalance})
		for _, a := range actions {
			if o, ok := a.(manager.Ordered); ok && leasehold.KindOf(o.Err) != want {
				t.Errorf("at %v: %v, want %v", at, o.Err, want)
			}
		}
		if _, err := m.Preview(at, manager.Order{Kind: manager.OrderRebalance}); leasehold.KindOf(err) != want {
			t.Errorf("a preview at %v: %v, want %v", at, err, want)
		}
	}
}

// A drained owner keeps nothing, stays a member, and is notified. After the drain it gets its part again.
func TestDrainAndUndrain(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	p.want = partition.Even{}.Assign
	a, b := l.mover("a"), l.mover("b")
	a.completes(a.departures()[0])
	l.settle()
	a.stopsReporting()
	since := len(l.log)
	for range 2 { // the second order changes nothing
		if err := l.orders(manager.OrderDrain, "a", leasehold.Range{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.noted(manager.NoteDraining); n != 1 {
		t.Errorf("noted %d times", n)
	}
	if !a.moving.last.Draining || b.moving.last.Draining {
		t.Errorf("draining: a %t, b %t", a.moving.last.Draining, b.moving.last.Draining)
	}
	a.wantDepartures(leasehold.Range{Limit: middle})
	a.completes(a.departures()[0])
	l.settle()
	a.stopsReporting()
	l.wantChanges(since, "moved")
	l.wantHolder(0, "b", "when a is drained")
	l.renew(3*time.Minute, a, b)
	if owners := l.machine.Owners(l.now); len(owners) != 2 || !owners[0].Draining || owners[0].Leases != 0 {
		t.Errorf("the drained owner is %+v", owners[0])
	}
	if err := l.orders(manager.OrderUndrain, "a", leasehold.Range{}); err != nil {
		t.Fatal(err)
	}
	b.wantDepartures(leasehold.Range{Limit: middle})
	if a.moving.last.Draining {
		t.Error("a is still reported as draining")
	}
}

// The last owner can be drained, but ranges without an owner go to it, since otherwise they would have none.
func TestLastOwnerIsDrained(t *testing.T) {
	l, p := newMovingLeader(t, "a")
	p.want = partition.Even{}.Assign
	a, b := l.mover("a"), l.mover("b")
	if err := l.orders(manager.OrderDrain, "b", leasehold.Range{}); err != nil {
		t.Fatal(err)
	}
	a.leave()
	l.settle()
	l.wantHolder(0, "b", "when a is gone")
	if len(b.leases) != 1 || !b.moving.last.Draining {
		t.Errorf("b has %v, draining %t", b.leases, b.moving.last.Draining)
	}
	l.mover("c")
	b.wantDepartures(leasehold.All) // it is still draining
}

// A range goes where an operator orders it, until the policy runs again.
func TestOrderedMove(t *testing.T) {
	l, p := newMovingLeader(t, "aaa")
	a, b := l.mover("a"), l.mover("b")
	if err := l.orders(manager.OrderMove, "b", cell(1, 2)); err != nil {
		t.Fatal(err)
	}
	a.wantDepartures(cell(1, 2))
	a.completes(a.departures()[0])
	l.settle()
	a.stopsReporting()
	l.renew(5*time.Minute, a, b)
	l.wantHolder(1<<56, "b", "until the next policy run")
	l.replan()
	if owner := p.last().Current.OwnerAt(1 << 56); owner != "b" {
		t.Errorf("the policy has %q as the owner", owner)
	}
	b.wantDepartures(cell(1, 2)) // the policy decides otherwise
}

// A rebalance ordered by an operator has no churn budget, and is not delayed by Gather.
func TestOrderedRebalance(t *testing.T) {
	l, p := newMovingLeader(t, "aaa", gathering)
	l.mover("a")
	l.mover("b")
	asked := len(p.asked)
	if err := l.orders(manager.OrderRebalance, "", leasehold.Range{}); err != nil {
		t.Fatal(err)
	}
	if len(p.asked) != asked+1 || p.last().Budget != 1 || len(p.last().Members) != 2 {
		t.Errorf("the policy ran %d times, with %+v", len(p.asked)-asked, p.last())
	}
	l.advance(2 * time.Second)
	l.mover("c")
	l.advance(2 * time.Second)
	if p.last().Budget == 1 {
		t.Error("the next policy run has no budget either")
	}
}
