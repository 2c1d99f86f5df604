package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// An OrderKind is the kind of an [Order].
type OrderKind uint8

// The kinds of orders.
const (
	OrderDrain     OrderKind = 1 // drain an owner
	OrderUndrain   OrderKind = 2 // end the drain of an owner
	OrderMove      OrderKind = 3 // move a range to an owner, until the next policy run changes it
	OrderRebalance OrderKind = 4 // run the policy without a churn budget
)

// An Order is a command of an operator. The reply is [Ordered].
type Order struct {
	ID    uint64 // chosen by the caller
	Kind  OrderKind
	Owner leasehold.OwnerID
	Range leasehold.Range // of OrderMove
}

// Ordered is the reply to an [Order]: it was started, or the error.
type Ordered struct {
	ID  uint64
	Err error
}

func (Order) managerEvent()    {}
func (Ordered) managerAction() {}

// order validates and starts an order.
func (m *Machine) order(now mono.Instant, o Order) {
	err := m.check(now, &o)
	if err == nil {
		switch o.Kind {
		case OrderDrain, OrderUndrain:
			m.drain(o.Owner, o.Kind == OrderDrain)
		case OrderMove:
			i, _ := m.members.findSeat(o.Owner)
			m.plan.desired.Set(o.Range, m.members.seats[i])
			m.plan.reasons.Set(o.Range, table.Ordered)
			m.plan.amended, m.plan.rescan = true, true
		case OrderRebalance:
			m.plan.churn.unlimited = true
			m.plan.replan, m.plan.occasion = true, table.Rebalance
			m.plan.gatherUntil = 0
		}
	}
	m.emit(Ordered{o.ID, err})
}

func (m *Machine) drain(owner leasehold.OwnerID, on bool) {
	i, _ := m.members.findSeat(owner)
	p := m.members.seats[i].incumbent
	if p.exit.draining == on {
		return
	}
	p.exit.draining = on
	m.emit(Note{What: NoteDraining, Owner: owner, Leases: len(p.held.leases), Draining: on})
	if !on {
		m.planFromTable()
	}
	m.retire(p)
}

// planFromTable makes the assignment equal to the table and the moves in progress. The last plan may be far from
// that: an owner whose drain ends has more than it.
func (m *Machine) planFromTable() {
	for r, e := range m.state.table.All() {
		if p := m.members.holderOf(e); p != nil && p.member() {
			m.plan.desired.Set(r, p.seat)
		}
	}
	for _, mv := range m.moves.all {
		m.plan.desired.Set(mv.Range, mv.to.seat)
	}
	m.plan.amended = true
}

// check returns the reason why an order cannot be executed.
func (m *Machine) check(now mono.Instant, o *Order) error {
	bad := func(kind leasehold.Kind, subject, format string, args ...any) error {
		return leasehold.Errorf("order", kind, subject, format, args...)
	}
	if !m.lead.active(now) {
		return bad(leasehold.ErrUnavailable, string(m.cfg.Namespace), "this manager's authority as leader has expired: try again")
	}
	switch o.Kind {
	case OrderRebalance:
		return nil
	case OrderDrain, OrderUndrain, OrderMove:
	default:
		return bad(leasehold.ErrInvalid, string(m.cfg.Namespace), "unknown kind of order: %d", o.Kind)
	}
	i, known := m.members.findSeat(o.Owner)
	if !known || !m.members.seats[i].incumbent.member() {
		return bad(leasehold.ErrNotFound, string(o.Owner), "no member has this owner name: \"leasehold owner list\" lists all members")
	}
	if o.Kind != OrderMove {
		return nil
	}
	if !o.Range.Valid() {
		return bad(leasehold.ErrInvalid, o.Range.String(), "is not a range")
	}
	if m.members.seats[i].incumbent.exit.retires() {
		return bad(leasehold.ErrInvalid, string(o.Owner), "the owner is being drained and takes no ranges")
	}
	return m.checkLimits(o)
}

// checkLimits reports whether an ordered move would exceed the limits of ranges.
func (m *Machine) checkLimits(o *Order) error {
	m.plan.amend()
	want, limits, own := m.plan.current.With(o.Range, o.Owner), m.limits(), 0
	for range want.Ranges(o.Owner) {
		own++
	}
	if len(want) > limits.MaxRanges || own > limits.MaxPerOwner {
		return leasehold.Errorf("order", leasehold.ErrLimit, o.Range.String(),
			"the move would result in %d ranges, %d of them of %q: at most %d and %d are allowed", len(want), own, string(o.Owner), limits.MaxRanges, limits.MaxPerOwner)
	}
	return nil
}

// A Planned is a range that would change its owner.
type Planned struct {
	Range    leasehold.Range
	From, To leasehold.OwnerID // "" means no owner
	// WithState: it would be moved with its state. Otherwise the state is lost.
	WithState bool
	Load      float64 // work per second of its keys, as far as reported
}

// Preview returns the ranges that an order would move, and changes nothing. Moves in progress are included.
func (m *Machine) Preview(now mono.Instant, o Order) ([]Planned, error) {
	if err := m.check(now, &o); err != nil {
		return nil, err
	}
	want, err := m.assignmentAfter(now, o)
	if err != nil {
		return nil, err
	}
	cells := m.members.loads(m.cfg.MinLoad).Cells
	var out []Planned
	for _, r := range partition.Diff(m.state.held(), want) {
		if r.From == "" {
			continue
		}
		p := Planned{Range: r.Range, From: r.From, To: r.To}
		p.Load, cells = loadWithin(cells, r.Range)
		if i, known := m.members.findSeat(r.From); known {
			if j, taken := m.members.findSeat(r.To); taken {
				p.WithState = m.members.seats[i].incumbent.moves.movable(m.members.seats[j])
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// assignmentAfter returns the assignment that an order results in.
func (m *Machine) assignmentAfter(now mono.Instant, o Order) (partition.Assignment, error) {
	fill := m.plan.churn // the bucket is not spent
	defer func() { m.plan.churn = fill }()
	m.plan.amend()
	switch o.Kind {
	case OrderMove:
		return m.plan.current.With(o.Range, o.Owner), nil
	case OrderDrain, OrderUndrain:
		return partition.Apply(m.cfg.Policy, m.input(now, func(p *peer) bool {
			if p.holder.Owner == o.Owner {
				return o.Kind == OrderDrain
			}
			return drained(p)
		}))
	default: // OrderRebalance
		in := m.input(now, drained)
		in.Budget = 1
		return partition.Apply(m.cfg.Policy, in)
	}
}

// loadWithin returns the reported load of a range, and the cells that a later range may overlap. Cells and ranges
// are sorted.
func loadWithin(cells []partition.Cell, r leasehold.Range) (float64, []partition.Cell) {
	for len(cells) > 0 && cells[0].Range.Last() < r.Start {
		cells = cells[1:]
	}
	var sum float64
	for _, c := range cells {
		part, ok := c.Range.Intersect(r)
		if !ok {
			break
		}
		sum += c.Rate * sizeOf(part) / sizeOf(c.Range)
	}
	return sum, cells
}
