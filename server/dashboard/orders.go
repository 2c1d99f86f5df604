package dashboard

import (
	"context"
	"net/http"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/access"
	"github.com/leasehold-dev/leasehold/admin"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
	"github.com/leasehold-dev/leasehold/server/jsonapi"
)

// An order is the body of a request to drain an owner or to move a range.
type order struct {
	Namespace string       `json:"namespace"`
	Owner     string       `json:"owner"`
	Cancel    bool         `json:"cancel"` // of a drain
	Start     *admin.Point `json:"start"`  // of a move
	Limit     *admin.Limit `json:"limit"`  // of a move
	DryRun    bool         `json:"dryRun"`
	LoseState bool         `json:"loseState"`
}

func (o order) attrs() []any {
	attrs := []any{"namespace", o.Namespace, "owner", o.Owner, "cancel", o.Cancel, "lose state", o.LoseState}
	if o.Start != nil && o.Limit != nil {
		attrs = append(attrs, "start", o.Start, "limit", o.Limit)
	}
	return attrs
}

func (o order) options() admin.OrderOptions {
	return admin.OrderOptions{DryRun: o.DryRun, LoseState: o.LoseState}
}

// plannedMoves bounds the displayed moves of a plan.
const plannedMoves = 20

// ordered responds to an order with its plan, and logs it. An order without a response of the manager
// may have been executed.
func (d *Dashboard) ordered(what string, give func(context.Context, order) (admin.Plan, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var o order
		if !read(w, r, &o) {
			return
		}
		plan, err := give(r.Context(), o)
		who, _ := access.CallerFrom(r.Context())
		log := d.cfg.Logger.With("caller", who.String(), "from", r.RemoteAddr).With(o.attrs()...)
		switch {
		case o.DryRun:
		case err != nil:
			log.Warn("an order from the dashboard has failed: "+what, "why", err)
		default:
			log.Info("an order from the dashboard: " + what)
		}
		if err != nil {
			refuse(w, err)
			return
		}
		plan.Moves = plan.Moves[:min(plannedMoves, len(plan.Moves))]
		jsonapi.Write(w, http.StatusOK, plan)
	}
}

// permit authorizes an order in advance. The client lists owners first, and the log would contain a
// denial of that request.
func (d *Dashboard) permit(ctx context.Context, method string, request any) error {
	if d.cfg.Access == nil {
		return nil
	}
	return wire.ToError(d.cfg.Access.Serve(ctx, method, request, func(context.Context) error { return nil }))
}

func (d *Dashboard) drain(ctx context.Context, o order) (admin.Plan, error) {
	switch {
	case o.Start != nil || o.Limit != nil:
		return admin.Plan{}, leasehold.Errorf("drain", leasehold.ErrInvalid, o.Owner, "a drain is of an owner, and has no range")
	case o.Cancel && o.DryRun:
		return admin.Plan{}, leasehold.Errorf("drain", leasehold.ErrInvalid, o.Owner, "a drain cannot be cancelled for a try")
	}
	request := &leaseholdv1.DrainOwnerRequest{Namespace: o.Namespace, Owner: o.Owner, DryRun: true}
	if err := d.permit(ctx, leaseholdv1.AdminService_DrainOwner_FullMethodName, request); err != nil {
		return admin.Plan{}, err
	}
	if o.Cancel {
		return admin.Plan{Moves: []admin.PlannedMove{}}, d.client.CancelDrain(ctx, o.Namespace, o.Owner)
	}
	drain, err := d.client.Drain(ctx, o.Namespace, o.Owner, o.options(), true)
	if err != nil {
		return admin.Plan{}, err
	}
	return *drain.Plan, nil
}

func (d *Dashboard) move(ctx context.Context, o order) (admin.Plan, error) {
	if o.Cancel {
		return admin.Plan{}, leasehold.Errorf("move", leasehold.ErrInvalid, o.Owner, "a move cannot be cancelled")
	}
	if o.Start == nil || o.Limit == nil {
		return admin.Plan{}, leasehold.Errorf("move", leasehold.ErrInvalid, "", "start and limit of the range are missing")
	}
	request := &leaseholdv1.MoveRangeRequest{Namespace: o.Namespace, Owner: o.Owner, DryRun: true}
	if err := d.permit(ctx, leaseholdv1.AdminService_MoveRange_FullMethodName, request); err != nil {
		return admin.Plan{}, err
	}
	keys := admin.Interval{Start: *o.Start, Limit: *o.Limit}.Keys()
	move, err := d.client.MoveRange(ctx, o.Namespace, keys, o.Owner, o.options())
	return move.Plan, err
}
