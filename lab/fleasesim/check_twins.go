package fleasesim

import "github.com/leasehold-dev/leasehold/internal/core/machine/flease"

// checkTwins is L8: a process that starts anew, however soon, and whatever of its
// former life is late, is not taken for a twin of itself.
func (o *oracle) checkTwins(p *process, n *flease.Notice) {
	o.checks[L8Twins]++
	switch {
	case len(o.world.byID[n.Peer]) < 2:
		o.world.Violated(L8Twins, "%s finds that two processes p%d are alive, but there is one", p.label, n.Peer)
	case n.What == flease.GaveWay && n.Peer != p.id:
		o.world.Violated(L8Twins, "%s has given way to a twin of p%d", p.label, n.Peer)
	}
}

// checkParted is L8, when faults have ended and all have heard of each other since:
// no two processes with one id take part.
func (o *oracle) checkParted() {
	for _, twins := range o.world.byID {
		o.checks[L8Twins]++
		if len(twins) > 1 && twins[0].takesPart() && twins[1].takesPart() {
			o.world.Violated(L8Twins, "%s and %s both take part, long after faults have ended", twins[0].label, twins[1].label)
		}
	}
}

func (p *process) takesPart() bool { return p.machine != nil && p.machine.Ready() }
