package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/protocol"
)

// The slowest and the fastest clock, in millionths: as far apart as the drift
// bound of 1.20 allows, and not further.
const (
	slowest rate = 912_872
	fastest rate = 1_095_445
)

// A nemesis makes trouble, and stops.
type nemesis struct {
	world    *world
	healed   bool
	starving bool
	misled   bool // the partition policy returns nonsense
	upcalls  bool // functions of applications fail
	beyond   bool // some owner's clock has been made too slow

	quietUntil int64 // true time: nothing strikes before

	kinds  []Fault // as often as the mix says
	detail string  // of the fault being inflicted, for the trace
	mean   time.Duration
}

// drawRate returns the rate of a clock within the bound: mostly at one of the
// ends, where the danger is.
func (n *nemesis) drawRate() rate {
	w := n.world
	if w.cfg.EqualClocks {
		return trueRate
	}
	switch w.random.IntN(3) {
	case 0:
		w.stats.slowClocks++
		return slowest
	case 1:
		w.stats.fastClocks++
		return fastest
	}
	return slowest + rate(w.random.Int64N(int64(fastest-slowest)))
}

// pause is how long the nemesis waits before it strikes.
func (n *nemesis) pause() time.Duration {
	if n.mean == 0 {
		n.mean = []time.Duration{1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second}[n.world.random.IntN(4)]
	}
	return n.world.below(2 * n.mean)
}

func (n *nemesis) strike() {
	w := n.world
	if n.healed {
		return
	}
	if w.now < n.quietUntil {
		w.later(time.Duration(n.quietUntil-w.now), none, 0, strike{})
		return
	}
	if n.kinds == nil {
		n.choose()
	}
	if len(n.kinds) == 0 {
		return
	}
	f := n.kinds[w.random.IntN(len(n.kinds))]
	n.detail = ""
	if n.inflict(f) {
		w.stats.faults[f]++
		w.trace.mix(uint64(w.now), 1<<40|uint64(f))
		w.trace.printf(w.now, "*** %v%s", f, n.detail)
	}
	w.later(n.pause(), none, 0, strike{})
}

// choose picks the kinds of faults of this world. Of a long list most worlds
// have only some: faults that hide each other must sometimes be apart, and rare
// ones must sometimes be frequent. A short list was chosen by someone already.
func (n *nemesis) choose() {
	w := n.world
	swarm := w.random.IntN(3) > 0 && len(w.cfg.Faults) > 8
	n.kinds = []Fault{}
	for _, f := range slices.Sorted(maps.Keys(w.cfg.Faults)) {
		if swarm && w.chance(2) {
			continue
		}
		n.kinds = append(n.kinds, slices.Repeat([]Fault{f}, w.cfg.Faults[f])...)
	}
}

// after does something later, unless the world has healed by then.
func (n *nemesis) after(d time.Duration, do func()) {
	n.world.later(d, none, 0, func() {
		if !n.healed {
			do()
		}
	})
}

// bootLater starts a process again after a while.
func (n *nemesis) bootLater(h *host, boot func()) {
	n.after(n.span(10*time.Millisecond, 15*time.Second), func() {
		if !h.alive {
			boot()
		}
	})
}

// tell notes whom a fault hits and how, for whoever reads the trace.
func (n *nemesis) tell(format string, args ...any) {
	if n.world.trace.text != nil {
		n.detail += " " + fmt.Sprintf(format, args...)
	}
}

// stop halts a process for a while.
func (n *nemesis) stop(h *host, most time.Duration, asleep bool) {
	d := n.span(100*time.Millisecond, most)
	n.tell("%s for %v", h.label, d)
	n.world.stop(h, d, asleep)
}

// span draws a duration between two, the short ones as likely as the long.
func (n *nemesis) span(least, most time.Duration) time.Duration {
	d := most
	for i := n.world.random.IntN(4); i > 0; i-- {
		d /= 3
	}
	return least + n.world.below(d)
}

// inflict makes a fault happen, and reports whether there was anyone to suffer.
func (n *nemesis) inflict(f Fault) bool {
	w := n.world
	switch f {
	case OwnerCrash, OwnerPause, OwnerSuspend, OwnerLeave, OwnerTwin, ClockBeyond:
		return n.hurtOwner(f, w.owners[w.random.IntN(len(w.owners))])
	case ManagerCrash, ManagerPause, ManagerResign, ManagerSuspend, Reconfigure, Delete:
		return n.hurtManager(f, w.managers[w.random.IntN(len(w.managers))])
	case LookupCrash, LookupPause, LookupSuspend:
		if len(w.lookups) == 0 {
			return false
		}
		return n.hurtLookup(f, w.lookups[w.random.IntN(len(w.lookups))])
	case LinkCut, LinkOneWay, Isolate, Loss, Duplicate, Delay, Misroute:
		return n.hurtNetwork(f)
	case StoreSlow, StoreUnknown, StoreDown, StoreCut, StoreStale:
		return n.hurtStore(f)
	case StoreLag:
		return !w.cfg.Diskless && n.storeLag()
	case Drain, MoveRange:
		return n.order(f)
	case ManagerRelapse:
		return n.relapse()
	case StoreRestore:
		return !w.cfg.Diskless && n.restoreStore()
	case MoveCrash:
		return n.crashMove()
	case Outage:
		return n.outage()
	case Upcalls:
		n.upcalls = true
		n.after(n.span(time.Second, 20*time.Second), func() { n.upcalls = false })
		return true
	case Hostile:
		return n.slander()
	case ClockRate:
		h := w.hosts[w.random.IntN(len(w.hosts))]
		if !h.alive || h.asleep || w.cfg.EqualClocks || n.isBeyond(h) {
			return false
		}
		h.clock.run(w.now, n.drawRate())
		n.tell("%s at %.3f", h.label, float64(h.clock.rate)/float64(trueRate))
		w.arm(h, h.wake)
		return true
	case Starve:
		n.starving = true
		n.after(n.span(time.Second, 20*time.Second), func() { n.starving = false })
		return true
	case PolicyBroken:
		n.misled = true
		n.after(n.span(time.Second, 20*time.Second), func() { n.misled = false })
		return true
	default:
		panic("unknown fault " + f.String())
	}
}

func (n *nemesis) isBeyond(h *host) bool {
	for _, o := range n.world.owners {
		if o.host == h {
			return o.beyond
		}
	}
	return false
}

func (n *nemesis) hurtOwner(f Fault, o *ownerHost) bool {
	w := n.world
	if f == OwnerTwin {
		return n.twin(o)
	}
	if !o.alive || o.stopped != 0 {
		return false
	}
	switch f {
	case OwnerCrash:
		n.tell("%s", o.label)
		w.kill(o.host)
		n.ownerBack(o)
	case OwnerPause:
		n.stop(o.host, 30*time.Second, false)
	case OwnerSuspend:
		n.stop(o.host, 30*time.Second, true)
	case OwnerLeave:
		n.tell("%s", o.label)
		if w.cfg.Graceful {
			return n.partGracefully(o)
		}
		if w.chance(2) && !o.parting {
			o.parting = true
			o.handle(owner.Part{})
			w.later(n.span(time.Second, 20*time.Second), o.endpoint, 0, weary{o.epoch})
			break
		}
		o.leaving = true
		o.handle(owner.Leave{})
	default: // ClockBeyond
		if w.cfg.EqualClocks {
			return false
		}
		o.beyond, n.beyond = true, true
		o.clock.run(w.now, rate(400_000+w.random.Int64N(400_000)))
		n.tell("%s at %.3f", o.label, float64(o.clock.rate)/float64(trueRate))
		w.arm(o.host, o.wake)
	}
	return true
}

// ownerBack starts an owner again: at once or later, under its own name or
// under a new one.
func (n *nemesis) ownerBack(o *ownerHost) {
	w := n.world
	name := o.holder.Owner
	if w.chance(3) {
		name = leasehold.OwnerID(fmt.Sprintf("%s.%d", o.firstName(), o.epoch))
	}
	n.bootLater(o.host, func() { o.boot(name) })
}

// twin starts a process under the name of another one that lives.
func (n *nemesis) twin(o *ownerHost) bool {
	w := n.world
	for _, other := range w.owners {
		if other != o && other.space == o.space && other.alive && other.holder.Owner != holderName(o) {
			n.tell("%s as %s of %s", o.label, other.holder.Owner, other.label)
			w.kill(o.host)
			o.boot(other.holder.Owner)
			return true
		}
	}
	return false
}

func holderName(o *ownerHost) leasehold.OwnerID {
	if o.holder == nil {
		return ""
	}
	return o.holder.Owner
}

func (n *nemesis) hurtManager(f Fault, m *managerHost) bool {
	w := n.world
	if !m.alive || m.stopped != 0 {
		return false
	}
	switch f {
	case ManagerCrash:
		n.tell("%s", m.label)
		w.kill(m.host)
		n.hangUp(m)
		n.bootLater(m.host, m.boot)
	case ManagerPause:
		n.stop(m.host, 20*time.Second, false)
	case ManagerSuspend:
		n.stop(m.host, 20*time.Second, true)
	case Reconfigure, Delete:
		return n.operate(f, m, w.spaces[w.random.IntN(len(w.spaces))])
	default: // ManagerResign
		n.tell("%s", m.label)
		m.resigning = true
		m.handle(node.Election{Event: election.Resign{}})
	}
	return true
}

// operate is an operator at work, through a manager that leads.
func (n *nemesis) operate(f Fault, m *managerHost, s *space) bool {
	term := m.node.Term()
	if term == 0 {
		return false
	}
	if f == Delete {
		n.tell("%s", s.name)
		m.ask(s.name, term, configure{remove: true})
		n.after(n.span(10*time.Millisecond, 30*time.Second), func() { n.create(s) })
		return true
	}
	t := n.drawTiming()
	n.tell("%s to leases of %v", s.name, t.Lease)
	m.ask(s.name, term, configure{timing: t})
	return true
}

// create creates a namespace, through whoever leads, as soon as someone does.
func (n *nemesis) create(s *space) {
	w := n.world
	for _, m := range w.managers {
		if term := m.node.Term(); m.alive && m.stopped == 0 && term != 0 {
			m.ask(s.name, term, configure{timing: n.drawTiming()})
			return
		}
	}
	n.after(time.Second, func() { n.create(s) })
}

func (n *nemesis) drawTiming() protocol.Timing {
	t := simTiming()
	if n.world.cfg.Faults[StoreRestore] > 0 {
		return t // a lease that was made longer after a backup lasts longer than a leader believes that knows only that
	}
	t.Lease /= time.Duration(1 + n.world.random.IntN(4))
	t.Renew = t.Lease / 4
	return t
}

// hangUp lets some owners notice that their connection to a manager has broken.
func (n *nemesis) hangUp(m *managerHost) {
	w := n.world
	for _, o := range w.owners {
		if w.chance(2) {
			w.later(n.span(0, time.Second), o.endpoint, 0, owner.HungUp{Manager: m.id})
		}
	}
}

func (n *nemesis) hurtLookup(f Fault, l *lookupHost) bool {
	w := n.world
	if !l.alive || l.stopped != 0 {
		return false
	}
	if f == LookupCrash {
		n.tell("%s", l.label)
		w.kill(l.host)
		n.bootLater(l.host, l.boot)
		return true
	}
	n.stop(l.host, 20*time.Second, f == LookupSuspend)
	return true
}

func (n *nemesis) hurtNetwork(f Fault) bool {
	w, net := n.world, &n.world.net
	d := n.span(200*time.Millisecond, 25*time.Second)
	switch f {
	case LinkCut, LinkOneWay:
		a, b := w.hosts[w.random.IntN(len(w.hosts))], w.managers[w.random.IntN(len(w.managers))].host
		if a == b {
			return false
		}
		if w.chance(2) {
			a, b = b, a
		}
		n.cutFor(d, a, b)
		if f == LinkCut {
			n.cutFor(d, b, a)
		}
	case Isolate:
		h, way := w.hosts[w.random.IntN(len(w.hosts))], w.random.IntN(3)
		for _, other := range w.hosts {
			if other != h && way != 0 {
				n.cutFor(d, h, other)
			}
			if other != h && way != 1 {
				n.cutFor(d, other, h)
			}
		}
	case Loss:
		net.loss = []int{1, 5, 20, 50}[w.random.IntN(4)]
		n.tell("of %d %% for %v", net.loss, d)
		n.after(d, func() { net.loss = 0 })
	case Duplicate:
		net.duplicate = 5 + w.random.IntN(50)
		n.tell("of %d %% for %v", net.duplicate, d)
		n.after(d, func() { net.duplicate = 0 })
	case Delay:
		net.delay = n.span(10*time.Millisecond, 4*time.Second)
		n.tell("of up to %v for %v", net.delay, d)
		n.after(d, func() { net.delay = 0 })
	default: // Misroute
		net.misroute = 1 + w.random.IntN(30)
		n.tell("of %d %% for %v", net.misroute, d)
		n.after(d, func() { net.misroute = 0 })
	}
	return true
}

func (n *nemesis) cutFor(d time.Duration, from, to *host) {
	net := &n.world.net
	n.tell("%s -> %s for %v", from.label, to.label, d)
	net.setCut(from.endpoint, to.endpoint, true)
	n.after(d, func() { net.setCut(from.endpoint, to.endpoint, false) })
}

func (n *nemesis) hurtStore(f Fault) bool {
	w, s := n.world, n.world.store
	if w.cfg.Diskless {
		return false
	}
	d := n.span(200*time.Millisecond, 20*time.Second)
	n.tell("for %v", d)
	switch f {
	case StoreSlow:
		s.slow = n.span(50*time.Millisecond, 30*time.Second)
		n.tell("by up to %v", s.slow)
		n.after(d, func() { s.slow = 0 })
	case StoreUnknown:
		s.unknown = 10 + w.random.IntN(80)
		n.after(d, func() { s.unknown = 0 })
	case StoreDown:
		s.down = true
		n.after(d, s.up)
	case StoreCut:
		m := w.managers[w.random.IntN(len(w.managers))]
		m.storeCut = true
		n.tell("from %s", m.label)
		n.after(d, func() { m.storeCut = false })
	default: // StoreStale
		s.stale = true
		n.after(d, func() { s.stale = false })
	}
	return true
}
