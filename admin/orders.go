package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// A Plan lists the moves of an order.
type Plan struct {
	Total     uint32        `json:"total"`     // ranges
	Share     float64       `json:"share"`     // of the key space, 0 to 1
	ShareLost float64       `json:"shareLost"` // that loses its state
	Moves     []PlannedMove `json:"moves"`     // the first 4096, in the order of keys
}

// A PlannedMove is a range that will change its owner.
type PlannedMove struct {
	Interval
	From      string  `json:"from"`
	To        string  `json:"to"` // "": no owner
	WithState bool    `json:"withState"`
	Share     float64 `json:"share"`
	Load      float64 `json:"load"` // work per second, as far as it is known
}

func planOf(p *leaseholdv1.Plan) Plan {
	return Plan{p.GetTotal(), p.GetShare(), p.GetShareLost(), convert(p.GetMoves(), func(m *leaseholdv1.PlannedMove) PlannedMove {
		return PlannedMove{
			Interval: intervalOf(m.GetStart(), m.GetLimit()), From: m.GetFrom(), To: m.GetTo(),
			WithState: m.GetWithState(), Share: m.GetShare(), Load: m.GetLoad(),
		}
	})}
}

// Orders are idempotent. So they are sent like requests that read, to one manager after the other.

// A delivery records whether a failed order may have been executed.
type delivery struct{ unsure bool }

// sent records the result of sending an order.
func (d *delivery) sent(dryRun bool, err error) {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		d.unsure = d.unsure || !dryRun
	}
}

// result returns the error of an order: indeterminate if it may have been executed and no manager has
// responded.
func (d *delivery) result(err error) error {
	if err == nil || !d.unsure || !Retriable(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return leasehold.Errorf("", leasehold.ErrIndeterminate, "", "%w\nThe order may have been executed. It is safe to repeat it.", err)
}

// OrderOptions are the options of orders that move ranges.
type OrderOptions struct {
	DryRun    bool // only return the plan
	LoseState bool // do it although state is lost; otherwise a LossError is returned
}

// Outcome returns the outcome of an accepted order.
func (o OrderOptions) Outcome() string {
	if o.DryRun {
		return OutcomePlanned
	}
	return OutcomeBegun
}

// A LossError is the error of an order that was not executed because state would be lost. Its kind is
// leasehold.ErrInvalid.
type LossError struct {
	Order  string   // such as "draining server-1"
	Share  float64  // of the key space
	Unable []string // owners that cannot move state; without any, there is no owner to receive it
}

func (e *LossError) Error() string {
	because := "there is no owner to receive it"
	if len(e.Unable) > 0 {
		because = fmt.Sprintf("these owners cannot move state: %q", e.Unable)
	}
	return fmt.Sprintf("%s would lose the state of %.2f %% of the keys, because %s", e.Order, 100*e.Share, because)
}

// Unwrap makes errors.Is(err, leasehold.ErrInvalid) true.
func (e *LossError) Unwrap() error { return leasehold.ErrInvalid }

// An UnknownOwnerError is the error of a name without an owner. Its kind is leasehold.ErrNotFound.
type UnknownOwnerError struct {
	Namespace, Owner string
	Known            []string // the names of all owners
}

func (e *UnknownOwnerError) Error() string {
	return fmt.Sprintf("there is no owner %q in %s", e.Owner, e.Namespace)
}

// Unwrap makes errors.Is(err, leasehold.ErrNotFound) true.
func (e *UnknownOwnerError) Unwrap() error { return leasehold.ErrNotFound }

// known returns the owners of a namespace and the one with a name.
func known(ctx context.Context, s service, namespace, name string) (all Owners, found Owner, err error) {
	if all, err = owners(ctx, s, namespace); err != nil {
		return all, found, err
	}
	found, ok := all.Find(name)
	if !ok {
		unknown := &UnknownOwnerError{Namespace: namespace, Owner: name}
		for _, o := range all.Owners {
			unknown.Known = append(unknown.Known, o.Owner)
		}
		return all, found, unknown
	}
	return all, found, nil
}

// order sends an order, and returns a LossError if it was rejected because of lost state. A dry run blocks
// the leader while it computes the plan, so it is sent only after a rejection.
func order(what string, options OrderOptions, all func() (Owners, error), send func(OrderOptions) (*leaseholdv1.Plan, error)) (Plan, error) {
	plan, rejection := send(options)
	if leasehold.KindOf(wire.ToError(rejection)) != leasehold.ErrInvalid {
		return planOf(plan), rejection
	}
	preview, err := send(OrderOptions{DryRun: true})
	if err != nil || preview.GetShareLost() == 0 {
		return Plan{}, rejection
	}
	there, err := all()
	if err != nil {
		return Plan{}, rejection
	}
	return Plan{}, planOf(preview).loss(what, there)
}

func (p Plan) loss(what string, all Owners) *LossError {
	loss := &LossError{Order: what, Share: p.ShareLost}
	for _, m := range p.Moves {
		for _, name := range []string{m.From, m.To} {
			o, found := all.Find(name)
			if !m.WithState && name != "" && (!found || !o.CanMoveState()) && !slices.Contains(loss.Unable, name) {
				loss.Unable = append(loss.Unable, name)
			}
		}
	}
	return loss
}

// Rebalance applies the policy now, without its limit on moves per minute. It returns when the moves have
// started.
func (c *Client) Rebalance(ctx context.Context, namespace string, options OrderOptions) (Plan, error) {
	var (
		plan Plan
		d    delivery
	)
	err := c.Do(ctx, func(ctx context.Context, s service) (err error) {
		plan, err = order("rebalancing", options,
			func() (Owners, error) { return owners(ctx, s, namespace) },
			func(o OrderOptions) (*leaseholdv1.Plan, error) {
				answer, err := s.Rebalance(ctx, &leaseholdv1.RebalanceRequest{
					Version: wire.Version, Namespace: namespace, DryRun: o.DryRun, LoseState: o.LoseState,
				})
				d.sent(o.DryRun, err)
				return answer.GetPlan(), err
			})
		return err
	})
	return plan, d.result(err)
}
