package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
)

// A failover is a scenario that random faults hardly ever produce: see moveFailover.
type failover struct {
	leader         *managerHost
	source, target *ownerHost
}

// moveFailover restarts an owner under its name while the leader cannot write, and moves a part of another owner's
// range to it. When the source has released the range, the leader crashes, and the target is cut off for a while, or all managers crash. So
// the next leader has a table with leases of the target's former session, and has received nothing from either.
func (n *nemesis) moveFailover() bool {
	f := &failover{n.leader(), n.anyOwner(), n.anyOwner()}
	if f.leader == nil || n.failover != nil || f.source == f.target || f.source.space != f.target.space {
		return false
	}
	if !f.source.runs() || !f.target.runs() || len(f.source.view.Kept) == 0 || len(f.target.view.Kept) == 0 {
		return false
	}
	n.detailf("%s from %s to %s", f.leader.label, f.source.label, f.target.label)
	n.failover = f
	f.leader.storeCut = true
	name := f.target.holder.Owner
	f.target.kill()
	f.target.boot(name)
	for range 4 {
		n.after(n.span(10*time.Millisecond, simTTL), func() { n.moveHalf(f) })
	}
	n.after(simTTL, func() { n.endFailover(f) })
	return true
}

// moveHalf moves half of a range of the source to the target.
func (n *nemesis) moveHalf(f *failover) {
	if n.failover != f || len(f.source.view.Kept) == 0 {
		return
	}
	r := f.source.view.Kept[0].Range
	if half := r.Start + (r.Last()-r.Start)/2; half > r.Start {
		r.Limit = half
	}
	n.command(f.source.space, manager.Order{Kind: manager.OrderMove, Owner: f.target.holder.Owner, Range: r})
}

// released is called when the source of a move releases leases, because the target has their state.
func (n *nemesis) released(source *ownerHost) {
	f := n.failover
	if f == nil || f.source != source {
		return
	}
	n.Branches["nemesis: failover in a move"]++
	n.endFailover(f)
	if n.Chance(2) {
		n.after(0, func() { n.killRepeatedly(n.Random.IntN(3)) })
		return
	}
	d := n.span(time.Second, 20*time.Second)
	for _, m := range n.managers {
		n.cutFor(d, f.target.host, m.host)
	}
	n.after(0, func() { n.crash(f.leader) })
	if n.Chance(2) {
		n.after(n.span(time.Second, 20*time.Second), func() {
			if source.runs() {
				n.leave(source)
			}
		})
	}
}

// killRepeatedly kills all managers, and again before a leader after them has decided whether the store is complete.
func (n *nemesis) killRepeatedly(again int) {
	d := n.span(100*time.Millisecond, 10*time.Second)
	n.killManagers(d)
	if again > 0 {
		n.after(d+5*time.Second+n.Below(10*time.Second), func() { n.killRepeatedly(again - 1) })
	}
}

func (n *nemesis) endFailover(f *failover) {
	if n.failover == f {
		n.failover = nil
		f.leader.storeCut = false
	}
}
