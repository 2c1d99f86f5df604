package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// reconfigure acts as an operator who changes the timing of a namespace, through a manager that leads.
func (n *nemesis) reconfigure(m *managerHost) bool { return n.configure(m, n.anySpace()) }

func (n *nemesis) configure(m *managerHost, s *space) bool {
	term := m.node.Term()
	if term == 0 {
		return false
	}
	t := n.drawTiming()
	n.detailf("%s to leases of %v", s.name, t.Lease)
	m.request(s.name, term, configure{timing: t})
	return true
}

// deleteNamespace acts as an operator who deletes a namespace, and creates it again later.
func (n *nemesis) deleteNamespace(m *managerHost) bool {
	s, term := n.anySpace(), m.node.Term()
	if term == 0 {
		return false
	}
	n.detailf("%s", s.name)
	m.request(s.name, term, configure{remove: true})
	n.after(n.span(10*time.Millisecond, 30*time.Second), func() { n.create(s) })
	return true
}

// create creates a namespace through the leader, as soon as there is one.
func (n *nemesis) create(s *space) {
	if m := n.leader(); m != nil {
		m.request(s.name, m.node.Term(), configure{timing: n.drawTiming()})
		return
	}
	n.after(time.Second, func() { n.create(s) })
}

func (n *nemesis) drawTiming() protocol.Timing {
	t := simTiming()
	if n.cfg.Faults[storeRestore] > 0 {
		return t // a leader that restores a backup would not know of a lease duration that was raised after the backup
	}
	t.Lease /= time.Duration(1 + n.Random.IntN(4))
	t.Renew = t.Lease / 4
	return t
}

// drain acts as an operator who drains an owner, and ends the drain later.
func (n *nemesis) drain() bool {
	o := n.anyOwner()
	if !o.alive {
		return false
	}
	n.detailf("%s", o.holder.Owner)
	if !n.command(o.space, manager.Order{Kind: manager.OrderDrain, Owner: o.holder.Owner}) {
		return false
	}
	n.after(n.span(10*time.Millisecond, 40*time.Second), func() {
		n.command(o.space, manager.Order{Kind: manager.OrderUndrain, Owner: o.holder.Owner})
	})
	return true
}

// moveRange acts as an operator who moves a range, or rebalances.
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
	n.detailf("%v to %s", r, o.holder.Owner)
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

// leader returns a manager that leads according to its own state, nil if there is none.
func (w *world) leader() *managerHost {
	for _, m := range w.managers {
		if m.runs() && m.node.Term() != 0 {
			return m
		}
	}
	return nil
}

// crashMove kills a process that takes part in a move: the source, the target or the leader.
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

// partGracefully lets an owner part, without a timeout, if enough other owners stay to take its ranges.
func (n *nemesis) partGracefully(o *ownerHost) bool {
	staying := 0
	for _, other := range o.space.owners {
		if other != o && other.alive && !other.parting && len(other.view.Kept) > 0 {
			staying++
		}
	}
	if staying < 2 || o.parting || o.manager != nil && !o.mayRestart() {
		return false
	}
	o.parting = true
	o.handle(owner.Part{})
	return true
}
