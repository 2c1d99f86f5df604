package dashboard

import (
	"context"
	"net/http"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// askPatience is how long the manager has to answer one question.
const askPatience = 5 * time.Second

// A planJSON is what an order moves, or would move.
type planJSON struct {
	Total     uint32        `json:"total"`     // how many ranges
	Share     float64       `json:"share"`     // of the key space
	ShareLost float64       `json:"shareLost"` // that loses its state
	Moves     []plannedJSON `json:"moves"`     // the first few
}

type plannedJSON struct {
	Start     string  `json:"start"`
	Limit     string  `json:"limit"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	WithState bool    `json:"withState"`
	Share     float64 `json:"share"`
}

// plannedMoves is how many moves of a plan are shown.
const plannedMoves = 20

func planOf(p *leaseholdv1.Plan) planJSON {
	out := planJSON{Total: p.GetTotal(), Share: p.GetShare(), ShareLost: p.GetShareLost(), Moves: []plannedJSON{}}
	for _, m := range p.GetMoves()[:min(plannedMoves, len(p.GetMoves()))] {
		out.Moves = append(out.Moves, plannedJSON{keyText(m.GetStart()), keyText(m.GetLimit()), m.GetFrom(), m.GetTo(), m.GetWithState(), m.GetShare()})
	}
	return out
}

// ordered logs an order, and whether it was taken. One that nobody has answered may have
// been all the same.
func (d *Dashboard) ordered(r *http.Request, err error, what string, about ...any) {
	about = append([]any{"from", r.RemoteAddr}, about...)
	if err != nil {
		d.cfg.Logger.Warn("an order from the dashboard has failed: "+what, append(about, "why", wire.ToError(err))...)
		return
	}
	d.cfg.Logger.Info("an order from the dashboard: "+what, about...)
}

// drain has an owner drained, or lets it take part again.
func (d *Dashboard) drain(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Namespace string `json:"namespace"`
		Owner     string `json:"owner"`
		Cancel    bool   `json:"cancel"`
		DryRun    bool   `json:"dryRun"`
		LoseState bool   `json:"loseState"`
	}
	if !read(w, r, &order) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	done, err := d.cfg.Admin.DrainOwner(ctx, &leaseholdv1.DrainOwnerRequest{
		Version: wire.Version, Namespace: order.Namespace, Owner: order.Owner,
		Cancel: order.Cancel, DryRun: order.DryRun, LoseState: order.LoseState,
	})
	if !order.DryRun {
		d.ordered(r, err, "drain", "namespace", order.Namespace, "owner", order.Owner, "cancel", order.Cancel, "lose state", order.LoseState)
	}
	if err != nil {
		refuse(w, wire.ToError(err))
		return
	}
	answer(w, http.StatusOK, planOf(done.GetPlan()))
}

// move has a range moved to an owner.
func (d *Dashboard) move(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Namespace string `json:"namespace"`
		Owner     string `json:"owner"`
		Start     string `json:"start"`
		Limit     string `json:"limit"`
		DryRun    bool   `json:"dryRun"`
		LoseState bool   `json:"loseState"`
	}
	if !read(w, r, &order) {
		return
	}
	start, err := leasehold.ParseKey(order.Start)
	if err != nil {
		refuse(w, err)
		return
	}
	limit, err := leasehold.ParseKey(order.Limit)
	if err != nil {
		refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	done, err := d.cfg.Admin.MoveRange(ctx, &leaseholdv1.MoveRangeRequest{
		Version: wire.Version, Namespace: order.Namespace, Owner: order.Owner, Start: uint64(start), Limit: uint64(limit),
		DryRun: order.DryRun, LoseState: order.LoseState,
	})
	if !order.DryRun {
		d.ordered(r, err, "move", "namespace", order.Namespace, "owner", order.Owner, "start", start, "limit", limit, "lose state", order.LoseState)
	}
	if err != nil {
		refuse(w, wire.ToError(err))
		return
	}
	answer(w, http.StatusOK, planOf(done.GetPlan()))
}
