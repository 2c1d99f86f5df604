package manager_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// An owner is drained, through a standby: all its keys move to the other owner with their state, and none moves
// back before the drain is cancelled.
func TestDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		a, b := c.joinMoving("a", nil), c.joinMoving("b", nil)
		eventually(t, time.Minute, "both have something", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		share := c.listed("m2", "a").GetShare()

		plan, err := c.drain("m2", &leaseholdv1.DrainOwnerRequest{Owner: "a", DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		wantPlan(t, plan, "a", "b", share, 0)
		if before := c.listed("m2", "a"); before.GetDraining() || !before.GetMovesState() {
			t.Errorf("after a dry run a is %v", before)
		}
		key := a.Leases()[0].Range.Start
		if _, err := c.drain("m2", &leaseholdv1.DrainOwnerRequest{Owner: "a"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "b has everything", func() bool { return complete(b) })
		time.Sleep(time.Minute)
		if now := c.listed("m2", "a"); !now.GetDraining() || now.GetLeases() != 0 || now.GetShare() != 0 {
			t.Errorf("a is %v, want it drained", now)
		}
		if kinds := c.kinds("m2", key); kinds[leaseholdv1.ChangeKind_CHANGE_KIND_MOVED] == 0 || kinds[leaseholdv1.ChangeKind_CHANGE_KIND_VACATED] != 0 {
			t.Errorf("the changes are %v, want moves and no losses", kinds)
		}

		if _, err := c.drain("m2", &leaseholdv1.DrainOwnerRequest{Owner: "a", Cancel: true}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "a has something again", func() bool { return complete(a, b) && len(a.Leases()) > 0 })
		if now := c.listed("m2", "a"); now.GetDraining() {
			t.Errorf("a is %v, although the drain was cancelled", now)
		}
	})
}

// A drain survives a failover.
func TestDrainSurvivesFailover(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		hold := make(chan struct{})
		a := c.joinMoving("a", hold)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		b := c.joinMoving("b", nil)
		if _, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, 10*time.Second, "the drain has started", func() bool { return len(c.moves("m1").GetMoves()) > 0 })
		time.Sleep(5 * time.Second)
		c.crash("m1")
		close(hold)
		eventually(t, time.Minute, "b has everything", func() bool { return complete(b) })
		if now := c.listed("m2", "a"); !now.GetDraining() || now.GetLeases() != 0 {
			t.Errorf("a is %v, want it drained", now)
		}
	})
}

// A drain that would lose state requires LoseState.
func TestDrainThatLosesStateIsRejected(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a, b := c.join("a"), c.joinMoving("b", nil)
		eventually(t, time.Minute, "both have something", func() bool { return complete(a, b) && len(a.Leases()) > 0 && len(b.Leases()) > 0 })
		share := c.listed("m1", "a").GetShare()
		plan, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a", DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		wantPlan(t, plan, "a", "b", share, share)
		if _, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a"}); !errors.Is(err, leasehold.ErrInvalid) || !contains(err.Error(), "the order would lose the state of") {
			t.Errorf("drain without LoseState: %v", err)
		}
		time.Sleep(time.Minute)
		if now := c.listed("m1", "a"); now.GetDraining() || !near(now.GetShare(), share) {
			t.Errorf("after a rejected drain a is %v", now)
		}
		if _, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a", LoseState: true}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "b has everything", func() bool { return complete(b) })
	})
}

// A drained owner keeps its keys until there is another.
func TestDrainOfLastOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a := c.joinMoving("a", nil)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		plan, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a"})
		if err != nil || plan.GetTotal() != 0 {
			t.Errorf("the plan is %v (%v), want none", plan, err)
		}
		time.Sleep(time.Minute)
		if !complete(a) {
			t.Error("a has returned keys without another owner")
		}
		b := c.joinMoving("b", nil)
		eventually(t, time.Minute, "b has everything", func() bool { return complete(b) })
	})
}

func TestInvalidOrders(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.create("m1", pool())
		a := c.joinMoving("a", nil)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		admin, ctx := c.admin("m1"), t.Context()
		move := func(r *leaseholdv1.MoveRangeRequest) error {
			r.Version = wire.Version
			_, err := admin.MoveRange(ctx, r)
			return wire.ToError(err)
		}
		drain := func(r *leaseholdv1.DrainOwnerRequest) error { _, err := c.drain("m1", r); return err }
		_, noVersion := admin.Rebalance(ctx, &leaseholdv1.RebalanceRequest{Namespace: "pool"})
		_, noNamespace := admin.ListMoves(ctx, &leaseholdv1.ListMovesRequest{Version: wire.Version, Namespace: "other"})
		for _, test := range []struct {
			name string
			err  error
			kind leasehold.Kind
			want string
		}{
			{"an unknown owner", drain(&leaseholdv1.DrainOwnerRequest{Owner: "z"}), leasehold.ErrNotFound, `"z": no member has this owner name`},
			{"an unknown owner, to look", drain(&leaseholdv1.DrainOwnerRequest{Owner: "z", DryRun: true}), leasehold.ErrNotFound, `"z"`},
			{"an unknown owner, to cancel", drain(&leaseholdv1.DrainOwnerRequest{Owner: "z", Cancel: true}), leasehold.ErrNotFound, `"z"`},
			{"a look at nothing", drain(&leaseholdv1.DrainOwnerRequest{Owner: "a", Cancel: true, DryRun: true}), leasehold.ErrInvalid, "is always empty"},
			{"no range", move(&leaseholdv1.MoveRangeRequest{Namespace: "pool", Owner: "a", Start: 7, Limit: 7}), leasehold.ErrInvalid, "is not a range"},
			{"no namespace", move(&leaseholdv1.MoveRangeRequest{Namespace: "other", Owner: "a"}), leasehold.ErrNotFound, "namespace create other"},
			{"no version", wire.ToError(noVersion), leasehold.ErrInvalid, "every request must have one"},
			{"moves of nothing", wire.ToError(noNamespace), leasehold.ErrNotFound, "namespace create other"},
		} {
			if !errors.Is(test.err, test.kind) || !contains(test.err.Error(), test.want) {
				t.Errorf("%s: %v, want %v: %s", test.name, test.err, test.kind, test.want)
			}
		}
	})
}

// MoveRange moves a range to an owner, and ListMoves shows the move.
func TestMoveRange(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		c.create("m1", pool())
		hold := make(chan struct{})
		a := c.joinMoving("a", hold)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		close(hold)
		b := c.joinMoving("b", nil)
		eventually(t, time.Minute, "b has something, and all is still", func() bool {
			return complete(a, b) && len(b.Leases()) > 0 && len(c.moves("m1").GetMoves()) == 0
		})
		target := a.Leases()[0].Range
		target.Limit = target.Start + leasehold.Key(target.Size()/2)
		request := &leaseholdv1.MoveRangeRequest{
			Version: wire.Version, Namespace: "pool", Owner: "b", Start: uint64(target.Start), Limit: uint64(target.Limit), DryRun: true,
		}
		look := func() *leaseholdv1.Plan {
			answer, err := c.admin("m2").MoveRange(t.Context(), request)
			if err != nil {
				t.Fatal(wire.ToError(err))
			}
			return answer.GetPlan()
		}
		wantPlan(t, look(), "a", "b", float64(target.Size())/(1<<64), 0)
		order := &leaseholdv1.MoveRangeRequest{Version: wire.Version, Namespace: "pool", Owner: "b", Start: uint64(target.Start), Limit: uint64(target.Limit)}
		if _, err := c.admin("m2").MoveRange(t.Context(), order); err != nil {
			t.Fatal(wire.ToError(err))
		}
		eventually(t, time.Minute, "b has it", func() bool { _, ok := b.Check(target.Start); return ok })
		if left := look(); left.GetTotal() != 0 {
			t.Errorf("after the move, the plan is %v", left)
		}

		back := &leaseholdv1.MoveRangeRequest{Version: wire.Version, Namespace: "pool", Owner: "a", Start: uint64(target.Start) + 5, ByKey: true}
		answer, err := c.admin("m1").MoveRange(t.Context(), back)
		if err != nil || answer.GetStart() != uint64(target.Start) {
			t.Fatalf("the range of a key is %v: %v", answer, wire.ToError(err))
		}
		eventually(t, time.Minute, "a has it again", func() bool { _, ok := a.Check(target.Start); return ok })
	})
}

func TestListMoves(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		c.start("m2")
		one := pool()
		one.Moves = 1
		c.create("m1", one)
		hold := make(chan struct{})
		a := c.joinMoving("a", hold)
		eventually(t, 5*time.Second, "a has everything", func() bool { return complete(a) })
		b := c.joinMoving("b", nil)
		if _, err := c.drain("m1", &leaseholdv1.DrainOwnerRequest{Owner: "a"}); err != nil {
			t.Fatal(err)
		}
		// The owner reports its progress with the next request.
		eventually(t, 10*time.Second, "a copies", func() bool {
			all := c.moves("m2").GetMoves()
			return len(all) > 0 && all[0].GetState() == leaseholdv1.MoveState_MOVE_STATE_COPYING && all[0].GetBytes() > 0
		})
		all := c.moves("m2")
		first := all.GetMoves()[0]
		if all.GetUnderWay() != 1 || len(all.GetMoves()) != int(all.GetUnderWay()+all.GetWaiting()) || first.GetFrom() != "a" || first.GetTo() != "b" ||
			first.GetRecords() != 1 || first.GetBytes() < recordSize || first.GetAge() <= 0 || len(first.GetId()) != 8 {
			t.Errorf("the moves are %v", all)
		}
		if from, to := c.listed("m2", "a"), c.listed("m2", "b"); from.GetMovesOut() != 1 || to.GetMovesIn() != 1 || from.GetMovesIn()+to.GetMovesOut() != 0 {
			t.Errorf("the owners are %v and %v", from, to)
		}
		if n := c.status("m2").GetNamespaces()[0].GetMoves(); n != 1 {
			t.Errorf("the status has %d moves, want 1", n)
		}
		close(hold)
		eventually(t, time.Minute, "b has everything", func() bool { return complete(b) })
		eventually(t, time.Minute, "all moves have ended", func() bool { return len(c.moves("m2").GetMoves()) == 0 })
	})
}

// Rebalance by an operator is not limited by churn.
func TestRebalance(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("m1")
		slow := pool()
		slow.Churn = 0.001
		c.create("m1", slow)
		a, b := c.joinMoving("a", nil), c.joinMoving("b", nil)
		eventually(t, time.Minute, "both have something", func() bool { return complete(a, b) && len(b.Leases()) > 0 })
		// All load is on keys of a, uniformly: no key is hot.
		busy, key := a.Leases()[0].Range, uint64(0)
		work := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				for range 50 {
					key += 0x9e3779b97f4a7c15 // spread over the key space
					a.Check(busy.Start + leasehold.Key(key%busy.Size()))
					b.Check(busy.Start + leasehold.Key(key%busy.Size()))
				}
			}
		}
		work(40 * time.Second)
		request := &leaseholdv1.RebalanceRequest{Version: wire.Version, Namespace: "pool", DryRun: true}
		answer, err := c.admin("m1").Rebalance(t.Context(), request)
		if err != nil {
			t.Fatal(wire.ToError(err))
		}
		if plan := answer.GetPlan(); plan.GetShare() < 0.01 || plan.GetShareLost() != 0 || plan.GetMoves()[0].GetLoad() == 0 {
			t.Errorf("the plan is %v, want one that moves some load", plan)
		}
		before := c.listed("m1", "a").GetShare()
		request.DryRun = false
		if _, err := c.admin("m1").Rebalance(t.Context(), request); err != nil {
			t.Fatal(wire.ToError(err))
		}
		work(10 * time.Second)
		if after := c.listed("m1", "a").GetShare(); before-after < 0.01 && after-before < 0.01 {
			t.Errorf("a had %v of the keys and has %v", before, after)
		}
	})
}
