package manager

import (
	"context"
	"log/slog"
	"sync"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/runtime/wire"
	leaseholdv1 "github.com/leasehold-dev/leasehold/proto/leasehold/v1"
)

// orders are the operators' orders that wait for the machine's reply.
type orders struct {
	mu      sync.Mutex
	newest  uint64
	answers map[uint64]*answer
}

// An answer is the machine's reply to an order.
type answer struct {
	given bool
	err   error
}

func newOrders() *orders { return &orders{answers: make(map[uint64]*answer)} }

// begin returns the number of a new order.
func (o *orders) begin() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.newest++
	o.answers[o.newest] = &answer{}
	return o.newest
}

// resolve records the machine's reply. It runs within a step of the machine.
func (o *orders) resolve(a machine.Ordered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if waiting := o.answers[a.ID]; waiting != nil {
		*waiting = answer{given: true, err: a.Err}
	}
}

// end removes an order, and returns the reply.
func (o *orders) end(id uint64) answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := *o.answers[id]
	delete(o.answers, id)
	return a
}

// A command is an order with its options.
type command struct {
	namespace string
	order     machine.Order
	byKey     bool // the order is about the range around its Range.Start
	dryRun    bool
	loseState bool
}

// execute computes the moves of a command and, unless it is a dry run, passes the order to the
// machine. It returns when the machine has accepted or rejected the order.
//
// The machine plans again from its state at that time, so the executed moves may differ. The check
// for lost state prevents surprises; it does not guarantee that no state is lost.
func (s *adminService) execute(ctx context.Context, c *command) (*leaseholdv1.Plan, error) {
	var (
		plan   []machine.Planned
		failed error
		term   leasehold.Term
	)
	err := s.led(ctx, c.namespace, func(now mono.Instant, led *machine.Machine) {
		if c.byKey {
			c.order.Range, _ = led.Table().At(c.order.Range.Start)
		}
		term = s.m.node.Term()
		if c.order.Kind != machine.OrderUndrain {
			plan, failed = led.Preview(now, c.order)
		}
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, wire.FromError(failed)
	}
	if c.order.Kind == machine.OrderMove {
		plan = within(plan, c.order.Range)
	}
	answer := fromPlan(plan)
	switch {
	case c.dryRun:
		return answer, nil
	case answer.GetShareLost() > 0 && !c.loseState:
		return nil, wire.FromError(leasehold.Errorf("order", leasehold.ErrInvalid, c.namespace,
			"the order would lose the state of %.2f %% of the keys, because the owners or the targets cannot move state: allow the loss if it is intended", 100*answer.GetShareLost()))
	}
	return answer, wire.FromError(s.order(ctx, leasehold.Namespace(c.namespace), term, c.order))
}

// order passes an order to the machine and waits for the reply.
func (s *adminService) order(ctx context.Context, ns leasehold.Namespace, term leasehold.Term, o machine.Order) error {
	o.ID = s.m.orders.begin()
	s.m.driver.PostUrgent(ctx, managerproc.Manager{Namespace: ns, Term: term, Event: o})
	err := s.m.driver.Do(ctx, func(mono.Instant) {}) // runs after the event, and so after the reply
	switch a := s.m.orders.end(o.ID); {
	case a.given:
		if a.err == nil {
			s.announce(ns, o)
		}
		return a.err
	case err != nil:
		return err
	}
	return leasehold.Errorf("order", leasehold.ErrNotLeader, s.m.cfg.Advertise, "this manager has ceased to lead; try again in a few seconds")
}

// announce logs and publishes an operator's order.
func (s *adminService) announce(ns leasehold.Namespace, o machine.Order) {
	var text string
	switch o.Kind {
	case machine.OrderDrain:
		text = "an operator wants the owner drained"
	case machine.OrderUndrain:
		text = "an operator wants the owner to take part again"
	case machine.OrderMove:
		text = "an operator wants the owner to have " + o.Range.String()
	case machine.OrderRebalance:
		text = "an operator wants the keys rebalanced"
	}
	s.m.events.publishNote(ns, o.Owner, "ordered", text)
	attrs := []slog.Attr{slog.String("namespace", string(ns))}
	if o.Owner != "" {
		attrs = append(attrs, slog.String("owner", string(o.Owner)))
	}
	s.m.log.LogAttrs(context.Background(), slog.LevelInfo, text, attrs...)
}

// within returns the parts of a plan within a range.
func within(plan []machine.Planned, r leasehold.Range) []machine.Planned {
	var out []machine.Planned
	for _, p := range plan {
		part, ok := p.Range.Intersect(r)
		if !ok {
			continue
		}
		p.Load *= shareOf(part) / shareOf(p.Range)
		p.Range = part
		out = append(out, p)
	}
	return out
}

// shareOf returns a range's share of the key space.
func shareOf(r leasehold.Range) float64 { return float64(r.Size()) / (1 << 64) }

// maxListedMoves bounds the list of moves in one reply.
const maxListedMoves = 4096

func fromPlan(plan []machine.Planned) *leaseholdv1.Plan {
	out := &leaseholdv1.Plan{Total: uint32(len(plan))}
	for i, p := range plan {
		share := shareOf(p.Range)
		out.Share += share
		if !p.WithState {
			out.ShareLost += share
		}
		if i < maxListedMoves {
			out.Moves = append(out.Moves, &leaseholdv1.PlannedMove{
				Start: uint64(p.Range.Start), Limit: uint64(p.Range.Limit), From: string(p.From), To: string(p.To),
				WithState: p.WithState, Share: share, Load: p.Load,
			})
		}
	}
	return out
}
