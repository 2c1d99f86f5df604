package manager

import (
	"context"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// DrainOwner starts or cancels a drain: the keys of the owner move to others.
func (s *adminService) DrainOwner(ctx context.Context, r *leaseholdv1.DrainOwnerRequest) (*leaseholdv1.DrainOwnerResponse, error) {
	if err := wire.CheckClient(r.GetVersion()); err != nil {
		return nil, wire.FromError(err)
	}
	if r.GetCancel() && r.GetDryRun() {
		return nil, wire.FromError(leasehold.Errorf("drain", leasehold.ErrInvalid, r.GetOwner(),
			"a dry run of cancelling a drain is always empty, because it moves no keys"))
	}
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.DrainOwner); done {
		return answer, err
	}
	kind := machine.OrderDrain
	if r.GetCancel() {
		kind = machine.OrderUndrain
	}
	plan, err := s.execute(ctx, &command{
		namespace: r.GetNamespace(), order: machine.Order{Kind: kind, Owner: leasehold.OwnerID(r.GetOwner())},
		dryRun: r.GetDryRun(), loseState: r.GetLoseState(),
	})
	return &leaseholdv1.DrainOwnerResponse{Plan: plan}, err
}

// MoveRange moves a range to an owner.
func (s *adminService) MoveRange(ctx context.Context, r *leaseholdv1.MoveRangeRequest) (*leaseholdv1.MoveRangeResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.MoveRange); done {
		return answer, err
	}
	c := &command{
		namespace: r.GetNamespace(), byKey: r.GetByKey(), dryRun: r.GetDryRun(), loseState: r.GetLoseState(),
		order: machine.Order{
			Kind: machine.OrderMove, Owner: leasehold.OwnerID(r.GetOwner()),
			Range: leasehold.Range{Start: leasehold.Key(r.GetStart()), Limit: leasehold.Key(r.GetLimit())},
		},
	}
	plan, err := s.execute(ctx, c)
	return &leaseholdv1.MoveRangeResponse{Plan: plan, Start: uint64(c.order.Range.Start), Limit: uint64(c.order.Range.Limit)}, err
}

// Rebalance calls the policy now.
func (s *adminService) Rebalance(ctx context.Context, r *leaseholdv1.RebalanceRequest) (*leaseholdv1.RebalanceResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.Rebalance); done {
		return answer, err
	}
	plan, err := s.execute(ctx, &command{
		namespace: r.GetNamespace(), order: machine.Order{Kind: machine.OrderRebalance},
		dryRun: r.GetDryRun(), loseState: r.GetLoseState(),
	})
	return &leaseholdv1.RebalanceResponse{Plan: plan}, err
}

// ListMoves returns the moves in progress, and the number of those that are queued.
func (s *adminService) ListMoves(ctx context.Context, r *leaseholdv1.ListMovesRequest) (*leaseholdv1.ListMovesResponse, error) {
	if answer, done, err := forward(ctx, s.m, r, leaseholdv1.AdminServiceClient.ListMoves); done {
		return answer, err
	}
	answer := &leaseholdv1.ListMovesResponse{}
	err := s.led(ctx, r.GetNamespace(), func(now mono.Instant, led *machine.Machine) {
		sizes := led.Sizes()
		answer.UnderWay, answer.Waiting = uint32(sizes.Moves), uint32(sizes.Backlog)
		for _, mv := range led.Moves(now, maxListedMoves) {
			answer.Moves = append(answer.Moves, &leaseholdv1.MoveStatus{
				Id: mv.ID, Start: uint64(mv.Range.Start), Limit: uint64(mv.Range.Limit), From: string(mv.From), To: string(mv.To),
				State: leaseholdv1.MoveState(mv.State), Records: mv.Records, Bytes: mv.Bytes,
				Age: int64(mv.Age), Patience: int64(mv.Patience), Reason: leaseholdv1.Reason(mv.Reason),
			})
		}
	})
	return answer, err
}
