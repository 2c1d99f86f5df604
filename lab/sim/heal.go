package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

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
		case *protocol.LeaseRequest, *protocol.LeaseReply, *protocol.LookupRequest, *protocol.LookupReply, protocol.NotLeader, lookup.Redirect, lookup.Refused, lookup.Failed, followRequest, followReply, refused, rest, verdict,
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
