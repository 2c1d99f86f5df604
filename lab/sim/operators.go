package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// reconfigure is an operator who gives a namespace another timing, through a manager
// that leads.
func (n *nemesis) reconfigure(m *managerHost) bool { return n.configure(m, n.anySpace()) }

func (n *nemesis) configure(m *managerHost, s *space) bool {
	term := m.node.Term()
	if term == 0 {
		return false
	}
	t := n.drawTiming()
	n.tell("%s to leases of %v", s.name, t.Lease)
	m.ask(s.name, term, configure{timing: t})
	return true
}

// deleteNamespace is an operator who deletes a namespace, and creates it again.
func (n *nemesis) deleteNamespace(m *managerHost) bool {
	s, term := n.anySpace(), m.node.Term()
	if term == 0 {
		return false
	}
	n.tell("%s", s.name)
	m.ask(s.name, term, configure{remove: true})
	n.after(n.span(10*time.Millisecond, 30*time.Second), func() { n.create(s) })
	return true
}

// create creates a namespace, through whoever leads, as soon as someone does.
func (n *nemesis) create(s *space) {
	if m := n.leader(); m != nil {
		m.ask(s.name, m.node.Term(), configure{timing: n.drawTiming()})
		return
	}
	n.after(time.Second, func() { n.create(s) })
}

func (n *nemesis) drawTiming() protocol.Timing {
	t := simTiming()
	if n.cfg.Faults[storeRestore] > 0 {
		return t // a lease that was made longer after a backup lasts longer than a leader believes that knows only that
	}
	t.Lease /= time.Duration(1 + n.Random.IntN(4))
	t.Renew = t.Lease / 4
	return t
}

// drain is an operator who drains an owner, and may change their mind.
func (n *nemesis) drain() bool {
	o := n.anyOwner()
	if !o.alive {
		return false
	}
	n.tell("%s", o.holder.Owner)
	if !n.command(o.space, manager.Order{Kind: manager.OrderDrain, Owner: o.holder.Owner}) {
		return false
	}
	n.after(n.span(10*time.Millisecond, 40*time.Second), func() {
		n.command(o.space, manager.Order{Kind: manager.OrderUndrain, Owner: o.holder.Owner})
	})
	return true
}

// moveRange is an operator who moves a range, or all that is worth it.
func (n *nemesis) moveRange() bool {
	o := n.anyOwner()
	if !o.alive {
		return false
	}
	if n.Chance(4) {
		return n.command(o.space, manager.Order{Kind: manager.OrderRebalance})
	}
	r, _ := n.oracle.truth(o.space).table.At(leasehold.Key(n.Random.Uint64()))
	if half := r.Start + (r.Last()-r.Start)/2; n.Chance(2) && half > r.Start {
		r.Limit = half
	}
	n.tell("%v to %s", r, o.holder.Owner)
	return n.command(o.space, manager.Order{Kind: manager.OrderMove, Owner: o.holder.Owner, Range: r})
}

func (n *nemesis) command(s *space, order manager.Order) bool {
	m := n.leader()
	if m == nil {
		return false
	}
	m.handle(managerproc.Manager{Namespace: s.name, Term: m.node.Term(), Event: order})
	return true
}

// leader returns a manager that takes itself for the leader, nil if there is none.
func (w *world) leader() *managerHost {
	for _, m := range w.managers {
		if m.runs() && m.node.Term() != 0 {
			return m
		}
	}
	return nil
}

// crashMove kills someone who takes part in a move: the source, the target or
// the leader.
func (n *nemesis) crashMove() bool {
	var out []*ownerHost
	for _, o := range n.owners {
		if o.alive && len(o.outgoing)+len(o.incoming) > 0 {
			out = append(out, o)
		}
	}
	if len(out) == 0 {
		return false
	}
	if n.Chance(3) {
		if m := n.leader(); m != nil {
			return n.crash(m)
		}
	}
	o := out[n.Random.IntN(len(out))]
	return o.runs() && n.crashOwner(o)
}

// partGracefully lets an owner part, if enough others stay to take what it has,
// and waits for as long as it takes.
func (n *nemesis) partGracefully(o *ownerHost) bool {
	staying := 0
	for _, other := range o.space.owners {
		if other != o && other.alive && !other.parting && len(other.view.Kept) > 0 {
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
