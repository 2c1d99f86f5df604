package main

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// The owners of a fake manager: server-1 can transfer its state to server-3, and
// server-2 cannot transfer any. A drain of server-1 is complete after two polls, and so
// is a move of its range to server-3.

// fakeOrders are the orders that a fake manager received.
type fakeOrders struct {
	drained map[string]int // polls of owners since the order
	dropped bool           // a drain is lost with the leader
	stuck   bool           // no progress
	gone    bool           // the drained owner leaves
	crashed bool           // the drained owner loses its state, which the table shows one poll later
	polls   int            // polls of the table since the owner left
	moved   int            // 1 + polls since the move; 0: there was none
}

// table returns the state for a poll of the ranges of an owner, or of all; the lock
// is held.
func (f *fakeManager) table(owner string) []*leaseholdv1.HeldRange {
	all := heldRanges()
	if _, drained := f.orders.drained["server-1"]; drained && f.orders.gone && owner == "" {
		if f.orders.polls++; !f.orders.crashed {
			all[0].Owner, all[0].Lease.Generation = "server-3", 50
		} else if f.orders.polls > 1 {
			all[0].Owner, all[0].Lease.Generation, all[0].Lost = "server-3", 50, 1235
		}
	}
	if f.orders.moved > 0 && owner == "server-3" {
		if f.orders.moved++; f.orders.moved > 2 && !f.orders.stuck {
			all[0].Owner = owner
		}
	}
	return all
}

func (f *fakeManager) ListOwners(_ context.Context, r *leaseholdv1.ListOwnersRequest) (*leaseholdv1.ListOwnersResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const member = leaseholdv1.OwnerState_OWNER_STATE_MEMBER
	first := &leaseholdv1.OwnerStatus{
		Holder: holder("server-1"), State: member, Leases: 64, Share: 0.5, Load: 1234.5,
		Patience: int64(11 * time.Second), MovesState: true, MovesOut: 1, Supervised: new(true),
	}
	if polls, drained := f.orders.drained["server-1"]; drained {
		first.Draining = !f.orders.dropped
		if polls > 0 && !f.orders.stuck && !f.orders.gone {
			first.Leases, first.Share = 0, 0
		}
		f.orders.drained["server-1"]++
	}
	third := &leaseholdv1.OwnerStatus{Holder: holder("server-3"), State: member, Patience: int64(11 * time.Second), MovesState: true, MovesIn: 1, Supervised: new(false)}
	third.Holder.Weight = 2.5
	_, err := f.index(r.GetNamespace())
	second := &leaseholdv1.OwnerStatus{
		Holder: holder("server-2"), State: leaseholdv1.OwnerState_OWNER_STATE_SILENT, Leases: 63, Share: 0.495, Patience: int64(4200 * time.Millisecond),
	}
	answer := &leaseholdv1.ListOwnersResponse{Lsn: 1234, Version: wire.Version, Owners: []*leaseholdv1.OwnerStatus{second, first, third}}
	switch {
	case first.GetDraining() && f.orders.gone && f.orders.drained["server-1"] > 1:
		answer.Owners = answer.GetOwners()[:1]
	case f.alone:
		answer.Owners = answer.GetOwners()[1:2]
	}
	if f.old {
		answer.Version, first.Supervised = 0, nil
	}
	return answer, err
}

// planned returns the plan that moves the ranges of an owner to another owner.
func planned(from, to string, withState bool) *leaseholdv1.Plan {
	plan := &leaseholdv1.Plan{}
	for _, held := range heldRanges() {
		if held.GetOwner() != from {
			continue
		}
		share := float64(rangeOf(held.GetLease()).Size()) / (1 << 64)
		plan.Moves = append(plan.Moves, &leaseholdv1.PlannedMove{
			Start: held.GetLease().GetStart(), Limit: held.GetLease().GetLimit(), From: from, To: to, WithState: withState, Share: share, Load: 500,
		})
		plan.Total++
		plan.Share += share
		if !withState {
			plan.ShareLost += share
		}
	}
	return plan
}

// refuseLoss returns the error of an order that would lose state without permission.
func refuseLoss(plan *leaseholdv1.Plan, dryRun, allowed bool) error {
	if plan.GetShareLost() > 0 && !dryRun && !allowed {
		return leasehold.Errorf("order", leasehold.ErrInvalid, "", "this would lose state")
	}
	return nil
}

func (f *fakeManager) DrainOwner(_ context.Context, r *leaseholdv1.DrainOwnerRequest) (*leaseholdv1.DrainOwnerResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	plan := &leaseholdv1.Plan{}
	switch r.GetOwner() {
	case "server-1":
		plan = planned("server-1", "server-3", true)
	case "server-2":
		plan = planned("server-2", "server-1", false)
	}
	if f.alone {
		plan = &leaseholdv1.Plan{}
	}
	switch {
	case r.GetCancel():
		delete(f.orders.drained, r.GetOwner())
	case !r.GetDryRun() && (r.GetLoseState() || plan.GetShareLost() == 0):
		if f.orders.drained == nil {
			f.orders.drained = map[string]int{}
		}
		f.orders.drained[r.GetOwner()] = 0
	}
	return &leaseholdv1.DrainOwnerResponse{Plan: plan}, refuseLoss(plan, r.GetDryRun(), r.GetLoseState())
}

func (f *fakeManager) MoveRange(_ context.Context, r *leaseholdv1.MoveRangeRequest) (*leaseholdv1.MoveRangeResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	answer := &leaseholdv1.MoveRangeResponse{Plan: &leaseholdv1.Plan{}, Start: r.GetStart(), Limit: r.GetLimit()}
	for _, held := range heldRanges() {
		keys := rangeOf(held.GetLease())
		if !keys.Contains(leasehold.Key(r.GetStart())) {
			continue
		}
		if r.GetByKey() {
			answer.Start, answer.Limit = uint64(keys.Start), uint64(keys.Limit)
		}
		if held.GetOwner() != r.GetOwner() && f.orders.moved == 0 {
			answer.Plan = planned(held.GetOwner(), r.GetOwner(), held.GetOwner() == "server-1" && r.GetOwner() == "server-3")
		}
	}
	refused := refuseLoss(answer.GetPlan(), r.GetDryRun(), r.GetLoseState())
	if !r.GetDryRun() && refused == nil && answer.GetPlan().GetTotal() > 0 {
		f.orders.moved = 1
	}
	return answer, refused
}

func (f *fakeManager) Rebalance(_ context.Context, r *leaseholdv1.RebalanceRequest) (*leaseholdv1.RebalanceResponse, error) {
	plan := planned("server-1", "server-3", true)
	if f.alone {
		plan = &leaseholdv1.Plan{}
	}
	return &leaseholdv1.RebalanceResponse{Plan: plan}, f.check(r.GetNamespace())
}

func (f *fakeManager) ListMoves(_ context.Context, r *leaseholdv1.ListMovesRequest) (*leaseholdv1.ListMovesResponse, error) {
	if f.alone || f.idle {
		return &leaseholdv1.ListMovesResponse{}, f.check(r.GetNamespace())
	}
	return &leaseholdv1.ListMovesResponse{UnderWay: 2, Waiting: 9, Moves: []*leaseholdv1.MoveStatus{
		{
			Id: "0badcafe", Limit: 1 << 62, From: "server-1", To: "server-3", State: leaseholdv1.MoveState_MOVE_STATE_COPYING,
			Records: 1234, Bytes: 5 << 20, Age: int64(1500 * time.Millisecond), Patience: int64(time.Minute),
		},
		{Id: "1badcafe", Start: 3 << 62, From: "server-3", To: "server-3"},
		{Start: 1 << 62, Limit: 1 << 63, From: "server-1", To: "server-3"},
	}}, f.check(r.GetNamespace())
}

func rangeOf(l *leaseholdv1.Lease) leasehold.Range {
	return leasehold.Range{Start: leasehold.Key(l.GetStart()), Limit: leasehold.Key(l.GetLimit())}
}
