package manager_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/partition"
	"pgregory.net/rapid"
)

// A preview returns the ranges that would move, whether their state moves along, and their load.
func TestPreview(t *testing.T) {
	l, p := newMovingLeader(t, "aabb")
	a := l.mover("a")
	l.mover("b")
	l.join("c") // cannot move state
	a.moving.loads = &partition.Loads{Cells: []partition.Cell{{Range: cell(0, 2), Rate: 1000}}}
	a.send()
	l.settle()
	for _, c := range []struct {
		name  string
		plan  string
		order manager.Order
		want  []manager.Planned
	}{
		{
			"a move", "aabb",
			manager.Order{Kind: manager.OrderMove, Owner: "b", Range: cell(1, 3)},
			[]manager.Planned{{Range: cell(1, 2), From: "a", To: "b", WithState: true, Load: 500}},
		},
		{
			"a move without state", "aabb",
			manager.Order{Kind: manager.OrderMove, Owner: "c", Range: cell(0, 1)},
			[]manager.Planned{{Range: cell(0, 1), From: "a", To: "c", Load: 500}},
		},
		{"nothing", "aabb", manager.Order{Kind: manager.OrderRebalance}, nil},
		{
			"a rebalance", "bbbb",
			manager.Order{Kind: manager.OrderRebalance},
			[]manager.Planned{{Range: cell(0, 2), From: "a", To: "b", WithState: true, Load: 1000}},
		},
		{
			"a drain", "aabb",
			manager.Order{Kind: manager.OrderDrain, Owner: "b"},
			[]manager.Planned{{Range: cell(2, 0), From: "b"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.give(c.plan)
			got, err := l.machine.Preview(l.now, c.order)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if n := l.machine.Sizes(); n.Moves+n.Backlog != 0 {
		t.Errorf("moves in progress: %+v", n)
	}
}

// An op is an event for a leader, its owners or its policy.
type op func(*paperLeader, *plan)

// drawOp draws an op. It must have the same effect on every leader.
func drawOp(t *rapid.T) op {
	names := []string{"aaaa", "abab", "bbaa", "ccab", "cccc", "abca"}
	plan0 := rapid.SampledFrom(names).Draw(t, "plan")
	who := rapid.IntRange(0, 2).Draw(t, "who")
	owner := leasehold.OwnerID([]string{"a", "b", "c"}[who])
	at := rapid.IntRange(0, 3).Draw(t, "at")
	with := func(f func(*paperLeader, *paperOwner)) op {
		return func(l *paperLeader, _ *plan) { f(l, l.owners[who]) }
	}
	order := func(o manager.Order) op { return func(l *paperLeader, _ *plan) { l.step(o) } }
	switch rapid.IntRange(0, 9).Draw(t, "op") {
	case 0:
		return func(_ *paperLeader, p *plan) { p.give(plan0) }
	case 1:
		return order(manager.Order{Kind: manager.OrderDrain, Owner: owner})
	case 2:
		return order(manager.Order{Kind: manager.OrderUndrain, Owner: owner})
	case 3:
		return order(manager.Order{Kind: manager.OrderMove, Owner: owner, Range: cell(at, (at+1)%4)})
	case 4:
		return order(manager.Order{Kind: manager.OrderRebalance})
	case 5:
		return with(func(_ *paperLeader, o *paperOwner) { o.getsOn(protocol.MoveDone) })
	case 6:
		return with(func(_ *paperLeader, o *paperOwner) { o.getsOn(protocol.MoveFailed) })
	case 7:
		rate := float64(rapid.IntRange(0, 1000).Draw(t, "rate"))
		return with(func(_ *paperLeader, o *paperOwner) {
			o.moving.loads = &partition.Loads{Cells: []partition.Cell{{Range: cell(at, (at+1)%4), Rate: rate}}}
			o.send()
		})
	case 8:
		return func(l *paperLeader, _ *plan) { l.renew(10*time.Second, l.owners...) }
	}
	return func(l *paperLeader, _ *plan) { l.settle() }
}

// getsOn ends the first move of an owner, with success or failure.
func (o *paperOwner) getsOn(s protocol.MoveState) {
	o.leader.settle()
	if o.moving.last == nil || len(o.departures()) == 0 {
		return
	}
	d := o.departures()[0]
	o.reports(d, s)
	if s == protocol.MoveDone {
		o.releases(d.Range)
	}
	o.send()
	o.leader.settle()
	o.stopsReporting()
}

// Previews have no effect: a leader with previews sends the same messages, at the same time, and records the same
// changes as one without.
func TestPreviewChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shy, asked := newPreviewed(t), newPreviewed(t)
		for range rapid.IntRange(1, 25).Draw(rt, "ops") {
			do := drawOp(rt)
			order := manager.Order{
				Kind: manager.OrderKind(rapid.IntRange(1, 4).Draw(rt, "kind")), Range: cell(1, 3),
				Owner: leasehold.OwnerID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "owner")),
			}
			before := len(asked.p.asked)
			if _, err := asked.l.machine.Preview(asked.l.now, order); err != nil && leasehold.KindOf(err) != leasehold.ErrInvalid {
				rt.Fatal(err)
			}
			asked.p.asked = asked.p.asked[:before]
			do(shy.l, shy.p)
			do(asked.l, asked.p)
			if diff := cmp.Diff(shy.observed(), asked.observed()); diff != "" {
				rt.Fatalf("behaviour with previews (-without +with):\n%s", diff)
			}
		}
	})
}

type previewed struct {
	l *paperLeader
	p *plan
}

func newPreviewed(t *testing.T) previewed {
	l, p := newMovingLeader(t, "aaaa", func(c *manager.Config) { c.Moves = 1 })
	for _, name := range []leasehold.OwnerID{"a", "b", "c"} {
		l.mover(name)
	}
	return previewed{l, p}
}

// observed returns everything that is visible of a leader.
func (w previewed) observed() any {
	type seen struct {
		Wake   mono.Instant
		Log    any
		Notes  []manager.Notable
		Sizes  manager.Sizes
		Moves  []manager.Move
		Owners []manager.Owner
		Told   [][]*protocol.LeaseReply
		Last   []*protocol.LeaseReply
		Asked  []partition.Input // policy inputs, without those of previews
	}
	s := seen{
		Wake: w.l.wake, Log: w.l.log, Notes: w.l.notes, Sizes: w.l.machine.Sizes(),
		Moves: w.l.machine.Moves(w.l.now, 100), Owners: w.l.machine.Owners(w.l.now), Asked: w.p.asked,
	}
	for _, o := range w.l.owners {
		s.Told, s.Last = append(s.Told, slices.Clone(o.unread)), append(s.Last, o.moving.last)
	}
	return s
}
