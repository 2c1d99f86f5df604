package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
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
