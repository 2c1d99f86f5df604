package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The slowest and the fastest clock, in millionths: as far apart as the drift
// bound of 1.20 allows, and not further.
const (
	slowest engine.Rate = 912_872
	fastest engine.Rate = 1_095_445
)

// A nemesis makes trouble, and stops.
type nemesis struct {
	world    *world
	healed   bool
	starving bool
	misled   bool // the partition policy returns nonsense
	upcalls  bool // functions of applications fail
	beyond   bool // some owner's clock has been made too slow

	misrouted int // percent of messages that reach the wrong process

	quietUntil int64 // true time: nothing strikes before

	kinds  []int  // of faults, each as often as the mix says
	detail string // of the fault being inflicted, for the trace
	mean   time.Duration
}

// drawRate returns the rate of a clock within the bound: mostly at one of the
// ends, where the danger is.
func (n *nemesis) drawRate() engine.Rate {
	w := n.world
	if w.cfg.EqualClocks {
		return engine.TrueRate
	}
	switch w.Random.IntN(3) {
	case 0:
		w.Branches["clock: at the slow end"]++
		return slowest
	case 1:
		w.Branches["clock: at the fast end"]++
		return fastest
	}
	return slowest + engine.Rate(w.Random.Int64N(int64(fastest-slowest)))
}

// pause is how long the nemesis waits before it strikes.
func (n *nemesis) pause() time.Duration {
	if n.mean == 0 {
		n.mean = []time.Duration{1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second}[n.world.Random.IntN(4)]
	}
	return n.world.Below(2 * n.mean)
}

func (n *nemesis) strike() {
	w := n.world
	if n.healed {
		return
	}
	if w.Now < n.quietUntil {
		w.After(time.Duration(n.quietUntil-w.Now), n.strike)
		return
	}
	if n.kinds == nil {
		n.choose()
	}
	if len(n.kinds) == 0 {
		return
	}
	kind := n.kinds[w.Random.IntN(len(n.kinds))]
	n.detail = ""
	if f := &faults[kind]; f.Inflict(n) {
		w.Faults[f.Name]++
		w.Mix(uint64(w.Now), 1<<40|uint64(kind))
		w.Printf("*** %s%s", f.Name, n.detail)
	}
	w.After(n.pause(), n.strike)
}

// choose picks the kinds of faults of this world. Of a long list most worlds
// have only some: faults that hide each other must sometimes be apart, and rare
// ones must sometimes be frequent. A short list was chosen by a user already.
func (n *nemesis) choose() {
	w := n.world
	swarm := w.Random.IntN(3) > 0 && len(w.cfg.Faults) > 8
	n.kinds = faults.Pick(w.cfg.Faults, func() bool { return swarm && w.Chance(2) })
}

// after does something later, unless the world has healed by then.
func (n *nemesis) after(d time.Duration, do func()) {
	n.world.After(d, func() {
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
	if n.world.Traced() {
		n.detail += " " + fmt.Sprintf(format, args...)
	}
}

// stop halts a process for a while.
func (n *nemesis) stop(h *host, most time.Duration, asleep bool) bool {
	d := n.span(100*time.Millisecond, most)
	n.tell("%s for %v", h.label, d)
	n.world.stop(h, d, asleep)
	return true
}

// setRate changes the rate of a clock.
func (n *nemesis) setRate(h *host, r engine.Rate) {
	w := n.world
	h.clock.Run(w.Now, r)
	n.tell("%s at %.3f", h.label, float64(r)/float64(engine.TrueRate))
	w.arm(h, h.wake)
}

func (n *nemesis) anyHost() *host { return n.world.hosts[n.world.Random.IntN(len(n.world.hosts))] }

func (n *nemesis) anyOwner() *ownerHost {
	return n.world.owners[n.world.Random.IntN(len(n.world.owners))]
}

func (n *nemesis) anyManager() *managerHost {
	return n.world.managers[n.world.Random.IntN(len(n.world.managers))]
}

func (n *nemesis) anySpace() *space { return n.world.spaces[n.world.Random.IntN(len(n.world.spaces))] }

// span draws a duration between two, the short ones as likely as the long.
func (n *nemesis) span(least, most time.Duration) time.Duration {
	d := most
	for i := n.world.Random.IntN(4); i > 0; i-- {
		d /= 3
	}
	return least + n.world.Below(d)
}

func (n *nemesis) isBeyond(h *host) bool {
	for _, o := range n.world.owners {
		if o.host == h {
			return o.beyond
		}
	}
	return false
}

// ownerBack starts an owner again: at once or later, under its own name or
// under a new one.
func (n *nemesis) ownerBack(o *ownerHost) {
	w := n.world
	name := o.holder.Owner
	if w.Chance(3) {
		name = leasehold.OwnerID(fmt.Sprintf("%s.%d", o.firstName(), o.epoch))
	}
	n.bootLater(o.host, func() { o.boot(name) })
}

func holderName(o *ownerHost) leasehold.OwnerID {
	if o.holder == nil {
		return ""
	}
	return o.holder.Owner
}

// hangUp lets some owners notice that their connection to a manager has broken.
func (n *nemesis) hangUp(m *managerHost) {
	w := n.world
	for _, o := range w.owners {
		if w.Chance(2) {
			w.Later(n.span(0, time.Second), o.endpoint, 0, owner.HungUp{Manager: m.id})
		}
	}
}

// heal ends all faults: links carry, the store answers, what was stopped goes
// on, and enough processes run. From here on the system must recover by
// itself, within the bound.
func (n *nemesis) heal() {
	w := n.world
	w.Printf("*** healed")
	n.healed = true
	n.starving, n.misled, n.upcalls = false, false, false
	n.misrouted = 0
	w.Net.Heal()
	w.store.slow, w.store.unknown, w.store.stale = 0, 0, false
	n.settleTraffic()
	w.store.up()
	for _, m := range w.managers { // before those that were stopped go on, and write
		m.storeCut, m.lag = false, lag{}
	}
	for _, h := range w.hosts {
		if h.alive && h.stopped != 0 {
			w.goOn(h)
		}
	}
	for _, m := range w.managers {
		if !m.alive || m.resigning {
			m.boot()
		}
	}
	for _, l := range w.lookups {
		if !l.alive {
			l.boot()
		}
	}
	for _, s := range w.spaces {
		n.healNamespace(s)
		n.healOwners(s)
	}
}

// healNamespace creates a namespace again that was deleted, and shows it to
// whoever leads.
func (n *nemesis) healNamespace(s *space) {
	w := n.world
	if w.cfg.Diskless {
		return // see provide
	}
	if w.store.catalog.Find(s.name) == nil {
		w.store.configure(s.name, configure{timing: simTiming()})
	}
	for _, m := range w.managers {
		if m.alive {
			w.Later(time.Millisecond, m.endpoint, 0, managerproc.Catalogued{Term: m.node.Term(), Catalog: w.store.readCatalog()})
		}
	}
}

// provide is the operator of a group without a store: it creates a namespace,
// through whoever leads, when there is no trace of it. When faults have stopped it
// does so too if it was deleted.
func (n *nemesis) provide(s *space) {
	w := n.world
	for _, m := range w.managers {
		c := m.node.Catalog()
		if !m.alive || m.stopped != 0 || c == nil || c.Entry(s.name) != nil && (!n.healed || c.Find(s.name) != nil) {
			continue
		}
		t := n.drawTiming()
		if n.healed {
			t = simTiming()
		}
		m.ask(s.name, m.node.Term(), configure{timing: t})
		m.memory.converse()
	}
	w.After(500*time.Millisecond, func() { n.provide(s) })
}

// healOwners makes sure that at least one owner of the namespace lives, and
// that no broken clock is left.
func (n *nemesis) healOwners(s *space) {
	w := n.world
	living := 0
	var dead []*ownerHost
	for _, o := range w.owners {
		if o.space != s {
			continue
		}
		if o.alive && (o.beyond || o.leaving || o.parting) {
			w.kill(o.host)
		}
		if o.alive {
			living++
		} else {
			dead = append(dead, o)
		}
	}
	for i, o := range dead {
		if w.Chance(2) || living == 0 && i == len(dead)-1 {
			o.boot(o.holder.Owner)
			living++
		}
	}
}

// settleTraffic drops what is still under way from slower times. A connection
// that was broken does not deliver old messages once it is back, and a store
// request either happened or never will.
func (n *nemesis) settleTraffic() {
	w := n.world
	latest := w.Now + int64(calmDelay)
	var dropped []*storeRequest
	w.Queue.Revise(func(at int64, e *engine.Event) (int64, bool) {
		if at <= latest {
			return at, true
		}
		switch what := e.What.(type) {
		case *protocol.LeaseRequest, *protocol.LeaseReply, *protocol.LookupRequest, *protocol.LookupReply, protocol.NotLeader, followRequest, followReply, refused, rest, verdict,
			letter, councilRequest, councilResponse:
			return at, false
		case *storeRequest:
			dropped = append(dropped, what)
			return at, false
		case *giveUp:
			return latest, true
		case *storeAnswer:
			return latest, true
		}
		return at, true
	})
	for _, r := range dropped {
		w.Later(time.Millisecond, engine.Nowhere, 0, &giveUp{r})
	}
}
