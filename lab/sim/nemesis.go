package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The slowest and the fastest clock, in millionths of true time: their ratio is the drift bound of 1.20.
const (
	slowest engine.Rate = 912_872
	fastest engine.Rate = 1_095_445
)

// A nemesis injects faults, and ends them.
type nemesis struct {
	*world
	healed       bool
	starving     bool
	policyBroken bool  // the partition policy returns errors and invalid assignments
	misplannedAt int64 // when it last did; the next plan follows after a renewal interval
	upcalls      bool  // functions of applications fail or hang
	beyond       bool  // some owner's clock is or was too slow

	failover *failover // nil if there is none

	misrouted int // percent of messages that are delivered to the wrong process

	quietUntil int64 // true time before which no fault is injected

	kinds  []int  // indices of faults, repeated by weight
	detail string // of the fault being inflicted, for the trace
	mean   time.Duration
}

// drawRate draws a clock rate within the bound: mostly one of the two extremes.
func (n *nemesis) drawRate() engine.Rate {
	if n.cfg.EqualClocks {
		return engine.TrueRate
	}
	switch n.Random.IntN(3) {
	case 0:
		n.Branches["clock: at the slow end"]++
		return slowest
	case 1:
		n.Branches["clock: at the fast end"]++
		return fastest
	}
	return slowest + engine.Rate(n.Random.Int64N(int64(fastest-slowest)))
}

func (n *nemesis) pause() time.Duration {
	if n.mean == 0 {
		n.mean = []time.Duration{1500 * time.Millisecond, 3 * time.Second, 6 * time.Second, 12 * time.Second}[n.Random.IntN(4)]
	}
	return n.Below(2 * n.mean)
}

// strike injects a fault, and schedules the next one.
func (n *nemesis) strike() {
	if n.healed {
		return
	}
	if n.Now < n.quietUntil {
		n.After(time.Duration(n.quietUntil-n.Now), n.strike)
		return
	}
	if n.kinds == nil {
		n.choose()
	}
	if len(n.kinds) == 0 {
		return
	}
	kind := n.kinds[n.Random.IntN(len(n.kinds))]
	n.detail = ""
	if f := &faults[kind]; f.Inflict(n) {
		n.Faults[f.Name]++
		n.Mix(uint64(n.Now), 1<<40|uint64(kind))
		n.Printf("*** %s%s", f.Name, n.detail)
	}
	n.After(n.pause(), n.strike)
}

// choose draws the kinds of faults of this world. With a long list, most worlds use a subset, so that faults
// also occur without others that hide them, and rare ones are sometimes frequent. A short list is used as it
// is: a user chose it.
func (n *nemesis) choose() {
	swarm := n.Random.IntN(3) > 0 && len(n.cfg.Faults) > 8
	n.kinds = faults.Pick(n.cfg.Faults, func() bool { return swarm && n.Chance(2) })
}

// after calls a function later, unless faults have ended before.
func (n *nemesis) after(d time.Duration, do func()) {
	n.After(d, func() {
		if !n.healed {
			do()
		}
	})
}

func (n *nemesis) bootLater(h *host, boot func()) {
	n.bootAfter(n.span(10*time.Millisecond, 15*time.Second), h, boot)
}

func (n *nemesis) bootAfter(d time.Duration, h *host, boot func()) {
	n.after(d, func() {
		if !h.alive {
			boot()
		}
	})
}

// detailf adds a detail of the fault to the trace.
func (n *nemesis) detailf(format string, args ...any) {
	if n.Traced() {
		n.detail += " " + fmt.Sprintf(format, args...)
	}
}

func (n *nemesis) setRate(h *host, r engine.Rate) {
	h.clock.Run(n.Now, r)
	n.detailf("%s at %.3f", h.label, float64(r)/float64(engine.TrueRate))
	h.arm(h.wake)
}

func (n *nemesis) anyHost() *host           { return engine.Pick(n.Random, n.hosts...) }
func (n *nemesis) anyOwner() *ownerHost     { return engine.Pick(n.Random, n.owners...) }
func (n *nemesis) anyManager() *managerHost { return engine.Pick(n.Random, n.managers...) }
func (n *nemesis) anyLookup() *lookupHost   { return engine.Pick(n.Random, n.lookups...) }
func (n *nemesis) anySpace() *space         { return engine.Pick(n.Random, n.spaces...) }

// span draws a duration from least to most, with short ones as likely as long ones.
func (n *nemesis) span(least, most time.Duration) time.Duration {
	d := most
	for i := n.Random.IntN(4); i > 0; i-- {
		d /= 3
	}
	return least + n.Below(d)
}

// ownerBack restarts an owner: at once or later, under its own name or a new one.
func (n *nemesis) ownerBack(o *ownerHost) {
	name := o.holder.Owner
	if n.Chance(3) {
		name = leasehold.OwnerID(fmt.Sprintf("%s.%d", o.firstName(), o.epoch))
	}
	n.bootLater(o.host, func() { o.boot(name) })
}

// hangUp notifies some owners that their connection to a manager has broken.
func (n *nemesis) hangUp(m *managerHost) {
	for _, o := range n.owners {
		if n.Chance(2) {
			n.Later(n.span(0, time.Second), o.endpoint, 0, owner.Disconnected{Manager: m.id})
		}
	}
}

// heal ends all faults: the network and the store work, stopped processes continue, and at least one owner of
// each namespace runs. From here on the system must recover by itself, within the bound.
func (n *nemesis) heal() {
	n.Printf("*** healed")
	n.healed = true
	n.starving, n.policyBroken, n.upcalls, n.failover = false, false, false, nil
	n.misrouted = 0
	n.Net.Heal()
	n.store.slow, n.store.unknown, n.store.stale = 0, 0, false
	n.dropSlowTraffic()
	n.store.up()
	for _, m := range n.managers { // before stopped managers continue, and write
		m.storeCut, m.lag = false, lag{}
	}
	for _, h := range n.hosts {
		if h.alive && h.stopped != 0 {
			h.unstop()
		}
	}
	n.restartMembers()
	for _, m := range n.managers {
		if !m.alive || m.resigning {
			m.boot()
		}
	}
	for _, l := range n.lookups {
		if !l.alive {
			l.boot()
		}
	}
	for _, s := range n.spaces {
		n.healNamespace(s)
		n.healOwners(s)
	}
}

// healNamespace creates a namespace again if it was deleted, and sends the catalog to the managers.
func (n *nemesis) healNamespace(s *space) {
	if n.cfg.Diskless {
		return // see provide
	}
	if n.store.catalog.Find(s.name) == nil {
		n.store.configure(s.name, configure{timing: simTiming()})
	}
	for _, m := range n.managers {
		if m.alive {
			n.Later(time.Millisecond, m.endpoint, 0, managerproc.Catalogued{Term: m.node.Term(), Catalog: n.store.readCatalog()})
		}
	}
}

// provide acts as the operator of a group without a store: it creates a namespace through the leader when the
// catalog has no entry of it. After the faults have stopped it also creates it if it was deleted.
func (n *nemesis) provide(s *space) {
	for _, m := range n.managers {
		c := m.node.Catalog()
		if !m.alive || m.stopped != 0 || c == nil || c.Entry(s.name) != nil && (!n.healed || c.Find(s.name) != nil) {
			continue
		}
		t := n.drawTiming()
		if n.healed {
			t = simTiming()
		}
		m.request(s.name, m.node.Term(), configure{timing: t})
		m.memory.runParts()
	}
	n.After(500*time.Millisecond, func() { n.provide(s) })
}

// healOwners ensures that at least one owner of the namespace runs, and that no clock is too slow.
func (n *nemesis) healOwners(s *space) {
	living := 0
	var dead []*ownerHost
	for _, o := range s.owners {
		if o.manager != nil {
			living++ // it starts with its manager
			continue
		}
		if o.alive && (o.beyond || o.leaving || o.parting) {
			o.kill()
		}
		if o.alive {
			living++
		} else {
			dead = append(dead, o)
		}
	}
	for i, o := range dead {
		if n.Chance(2) || living == 0 && i == len(dead)-1 {
			o.boot(o.holder.Owner)
			living++
		}
	}
}

// dropSlowTraffic drops slow messages that are still in flight. A broken connection does not deliver old
// messages after it is restored, and a store request has been executed or never will be.
func (n *nemesis) dropSlowTraffic() {
	latest := n.Now + int64(calmDelay)
	var dropped []*storeRequest
	n.Queue.Revise(func(at int64, e *engine.Event) (int64, bool) {
		if at <= latest {
			return at, true
		}
		switch what := e.What.(type) {
		case *protocol.LeaseRequest, *protocol.LeaseReply, *protocol.LookupRequest, *protocol.LookupReply, protocol.NotLeader, lookup.Redirect, lookup.Refused, lookup.Failed, followRequest, followReply, refused, finalState, moveReply,
			leaseMessage, councilRequest, councilResponse, *deathReport, deathReply:
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
		n.Later(time.Millisecond, engine.Nowhere, 0, &giveUp{r})
	}
}
