package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/machine/owner"
)

// order is an operator who drains an owner or moves a range, through whoever
// leads.
func (n *nemesis) order(f Fault) bool {
	w := n.world
	o := w.owners[w.random.IntN(len(w.owners))]
	if !o.alive {
		return false
	}
	if f == Drain {
		n.tell("%s", o.holder.Owner)
		if !n.command(o.space, manager.Order{Kind: manager.OrderDrain, Owner: o.holder.Owner}) {
			return false
		}
		n.after(n.span(10*time.Millisecond, 40*time.Second), func() {
			n.command(o.space, manager.Order{Kind: manager.OrderUndrain, Owner: o.holder.Owner})
		})
		return true
	}
	if w.chance(4) {
		return n.command(o.space, manager.Order{Kind: manager.OrderRebalance})
	}
	r, _ := w.oracle.truth(o.space).table.At(leasehold.Key(w.random.Uint64()))
	if half := r.Start + (r.Last()-r.Start)/2; w.chance(2) && half > r.Start {
		r.Limit = half
	}
	n.tell("%v to %s", r, o.holder.Owner)
	return n.command(o.space, manager.Order{Kind: manager.OrderMove, Owner: o.holder.Owner, Range: r})
}

// command gives an order to whoever leads.
func (n *nemesis) command(s *space, order manager.Order) bool {
	for _, m := range n.world.managers {
		if term := m.node.Term(); m.alive && m.stopped == 0 && term != 0 {
			m.handle(node.Manager{Namespace: s.name, Term: term, Event: order})
			return true
		}
	}
	return false
}

// crashMove kills someone who takes part in a move: the source, the target or
// the leader.
func (n *nemesis) crashMove() bool {
	w := n.world
	var out []*ownerHost
	for _, o := range w.owners {
		if o.alive && len(o.outgoing)+len(o.incoming) > 0 {
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return false
	}
	if w.chance(3) {
		for _, m := range w.managers {
			if m.alive && m.stopped == 0 && m.node.Term() != 0 {
				return n.hurtManager(ManagerCrash, m)
			}
		}
	}
	return n.hurtOwner(OwnerCrash, out[w.random.IntN(len(out))])
}

// partGracefully lets an owner part, if enough others stay to take what it has,
// and waits for as long as it takes.
func (n *nemesis) partGracefully(o *ownerHost) bool {
	staying := 0
	for _, other := range n.world.owners {
		if other != o && other.space == o.space && other.alive && !other.parting && len(other.view.Kept) > 0 {
			staying++
		}
	}
	if staying < 2 || o.parting {
		return false
	}
	o.parting = true
	o.handle(owner.Part{})
	return true
}
