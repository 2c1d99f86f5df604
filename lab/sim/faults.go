package sim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Kinds that are not in the default mix: scenarios, and those that change the whole world.
const (
	managerRelapse = "manager-relapse"
	storeRestore   = "store-restore"
	moveFailover   = "move-failover"
)

// faults are the kinds of faults, with their default weights.
var faults = engine.Faults[*nemesis]{
	fault("owner-crash", 10, on((*nemesis).anyOwner, (*nemesis).crashOwner)),                                                     // an owner crashes, and restarts at once or later, under its name or another one
	fault("owner-pause", 8, stop((*nemesis).anyOwner, 30, false)),                                                                // an owner is stopped, while its clock runs on
	fault("owner-suspend", 3, stop((*nemesis).anyOwner, 30, true)),                                                               // an owner's computer is suspended: its clock stands still
	fault("owner-leave", 4, on((*nemesis).anyOwner, (*nemesis).leave)),                                                           // an owner closes properly, and restarts later
	fault("owner-twin", 3, (*nemesis).twin),                                                                                      // a second process with an owner's name is started
	fault("manager-crash", 5, on((*nemesis).anyManager, (*nemesis).crash)),                                                       // a manager crashes and restarts
	fault("manager-pause", 5, stop((*nemesis).anyManager, 20, false)),                                                            // a manager is stopped, while its clock runs on
	fault("manager-resign", 4, on((*nemesis).anyManager, (*nemesis).resign)),                                                     // a manager is shut down properly and restarts
	fault("manager-suspend", 3, stop((*nemesis).anyManager, 20, true)),                                                           // a manager's computer is suspended
	fault("lookup-crash", 2, on((*nemesis).anyLookup, (*nemesis).crashLookup)),                                                   // a lookup crashes and restarts
	fault("lookup-pause", 3, stop((*nemesis).anyLookup, 20, false)),                                                              // a lookup is stopped
	fault("lookup-suspend", 2, stop((*nemesis).anyLookup, 20, true)),                                                             // a lookup's computer is suspended
	fault("link-cut", 10, forNetwork(cutLink(true))),                                                                             // messages between two processes are lost
	fault("link-one-way", 10, forNetwork(cutLink(false))),                                                                        // messages from one process to another are lost
	fault("isolate", 6, forNetwork((*nemesis).isolate)),                                                                          // all messages to or from a process are lost, or both
	fault("loss", 5, percent(func(n *nemesis) (*int, int) { return &n.Net.Loss, engine.Pick(n.Random, 1, 5, 20, 50) })),          // messages are lost
	fault("duplicate", 5, percent(func(n *nemesis) (*int, int) { return &n.Net.Duplicate, 5 + n.Random.IntN(50) })),              // messages are duplicated
	fault("delay", 6, forNetwork((*nemesis).delay)),                                                                              // messages are delayed and reordered
	fault("misroute", 4, percent(func(n *nemesis) (*int, int) { return &n.misrouted, 1 + n.Random.IntN(30) })),                   // messages reach the wrong process
	fault("hostile", 2, (*nemesis).sendInvalid),                                                                                  // messages that no correct peer sends
	fault("store-slow", 3, forStore((*nemesis).slowStore)),                                                                       // the store takes seconds
	fault("store-unknown", 5, forStore((*nemesis).loseAnswers)),                                                                  // requests to the store, or its replies, are lost
	fault("store-down", 3, forStore((*nemesis).stopStore)),                                                                       // the store has no quorum
	fault("store-cut", 5, forStore((*nemesis).cutStore)),                                                                         // a manager cannot reach the store
	fault("store-stale", 4, forStore((*nemesis).staleStore)),                                                                     // reads that need not be linearizable are stale, and watches are late
	fault("clock-rate", 6, (*nemesis).changeRate),                                                                                // clocks change their rates, within the bound
	fault("clock-beyond", 1, on((*nemesis).anyOwner, (*nemesis).slowBeyond)),                                                     // an owner's clock is slower than the bound allows
	fault("starve", 4, forWhile(func(n *nemesis, d time.Duration) { engine.SetFor(&n.World, d, &n.starving, true) })),            // timers fire late
	fault("policy-broken", 2, forWhile(func(n *nemesis, d time.Duration) { engine.SetFor(&n.World, d, &n.policyBroken, true) })), // the partition policy returns nonsense
	fault("reconfigure", 3, on((*nemesis).anyManager, (*nemesis).reconfigure)),                                                   // an operator gives a namespace shorter or longer leases
	fault("delete", 1, on((*nemesis).anyManager, (*nemesis).deleteNamespace)),                                                    // an operator deletes a namespace, and creates it again
	fault("drain", 4, (*nemesis).drain),                                                                                          // an operator drains an owner, and ends the drain later
	fault("move-range", 4, (*nemesis).moveRange),                                                                                 // an operator moves a range
	fault("move-crash", 6, (*nemesis).crashMove),                                                                                 // the source or the target of a move, or the leader, crashes during the move
	fault("upcalls", 3, forWhile(func(n *nemesis, d time.Duration) { engine.SetFor(&n.World, d, &n.upcalls, true) })),            // an application's exporters and importers fail or hang
	fault(managerRelapse, 0, (*nemesis).relapse),                                                                                 // without a store: an old leader continues when another manager has just restarted
	fault(storeRestore, 0, withStore((*nemesis).restoreStore)),                                                                   // the store is restored from an old backup, with or without a restart of the managers
	fault("outage", 3, (*nemesis).outage),                                                                                        // all managers crash, are stopped or are cut off, or the store is down, for a second to a day
	fault("store-lag", 4, withStore((*nemesis).storeLag)),                                                                        // the store is slow for one manager only
	fault(moveFailover, 0, withStore((*nemesis).moveFailover)),                                                                   // without writes of the leader, an owner restarts and gets a range; then the leader crashes and the owner is cut off
}

func fault(name string, weight int, inflict func(*nemesis) bool) engine.Fault[*nemesis] {
	return engine.Fault[*nemesis]{Kind: engine.Kind{Name: name, Weight: weight}, Inflict: inflict}
}

// Kinds returns the kinds of faults, with the default mix.
func Kinds() engine.Kinds { return faults.Kinds() }

func on[P interface{ runs() bool }](pick func(*nemesis) P, hit func(*nemesis, P) bool) func(*nemesis) bool {
	return func(n *nemesis) bool {
		p := pick(n)
		return p.runs() && hit(n, p)
	}
}

// stop returns a fault that stops a random process for at most some seconds.
func stop[P interface {
	runs() bool
	at() *host
}](pick func(*nemesis) P, seconds time.Duration, asleep bool) func(*nemesis) bool {
	return on(pick, func(n *nemesis, p P) bool {
		d := n.span(100*time.Millisecond, seconds*time.Second)
		n.detailf("%s for %v", p.at().label, d)
		p.at().stop(d, asleep)
		return true
	})
}

// forNetwork returns a fault of the network that lasts for a while.
func forNetwork(worsen func(*nemesis, time.Duration) bool) func(*nemesis) bool {
	return func(n *nemesis) bool { return worsen(n, n.span(200*time.Millisecond, 25*time.Second)) }
}

// withStore returns a fault that does nothing without a store.
func withStore(hit func(*nemesis) bool) func(*nemesis) bool {
	return func(n *nemesis) bool { return !n.cfg.Diskless && hit(n) }
}

// forWhile returns a fault that lasts for a while.
func forWhile(worsen func(*nemesis, time.Duration)) func(*nemesis) bool {
	return func(n *nemesis) bool {
		worsen(n, n.span(time.Second, 20*time.Second))
		return true
	}
}

// forStore returns a fault of the store that lasts for a while.
func forStore(worsen func(*nemesis, time.Duration)) func(*nemesis) bool {
	return withStore(func(n *nemesis) bool {
		d := n.span(200*time.Millisecond, 20*time.Second)
		n.detailf("for %v", d)
		worsen(n, d)
		return true
	})
}

func (n *nemesis) crashOwner(o *ownerHost) bool {
	n.detailf("%s", o.label)
	if o.manager != nil {
		n.crashMember(o.manager)
		return true
	}
	o.kill()
	n.ownerBack(o)
	return true
}

func (n *nemesis) leave(o *ownerHost) bool {
	n.detailf("%s", o.label)
	switch {
	case n.cfg.Graceful:
		return n.partGracefully(o)
	case n.Chance(2) && !o.parting:
		o.parting = true
		o.handle(owner.Part{})
		o.complete(n.span(time.Second, 20*time.Second), "timeout of parting", func() {
			o.leaving = true
			o.step(owner.Leave{})
		})
	default:
		o.leaving = true
		o.handle(owner.Leave{})
	}
	return true
}

// twin restarts a process under the name of another owner that runs.
func (n *nemesis) twin() bool {
	if n.cfg.Embedded {
		return false // names are fixed
	}
	o := n.anyOwner()
	for _, other := range o.space.owners {
		if other != o && other.alive && other.holder.Owner != o.holder.Owner {
			n.detailf("%s as %s of %s", o.label, other.holder.Owner, other.label)
			o.kill()
			o.boot(other.holder.Owner)
			return true
		}
	}
	return false
}

func (n *nemesis) slowBeyond(o *ownerHost) bool {
	if n.cfg.EqualClocks {
		return false
	}
	o.beyond, n.beyond = true, true
	n.setRate(o.host, engine.Rate(400_000+n.Random.Int64N(400_000)))
	return true
}

func (n *nemesis) changeRate() bool {
	h := n.anyHost()
	if !h.alive || h.asleep || n.cfg.EqualClocks || slices.ContainsFunc(n.owners, func(o *ownerHost) bool { return o.host == h && o.beyond }) {
		return false
	}
	n.setRate(h, n.drawRate())
	return true
}

func (n *nemesis) crash(m *managerHost) bool {
	n.detailf("%s", m.label)
	m.kill()
	n.hangUp(m)
	n.bootLater(m.host, m.boot)
	return true
}

func (n *nemesis) resign(m *managerHost) bool {
	n.detailf("%s", m.label)
	m.resigning = true
	m.handle(managerproc.Election{Event: byrecord.Resign{}})
	return true
}

func (n *nemesis) crashLookup(l *lookupHost) bool {
	n.detailf("%s", l.label)
	l.kill()
	n.bootLater(l.host, l.boot)
	return true
}

func cutLink(both bool) func(*nemesis, time.Duration) bool {
	return func(n *nemesis, d time.Duration) bool {
		a, b := n.anyHost(), n.anyManager().host
		if a == b {
			return false
		}
		if n.Chance(2) {
			a, b = b, a
		}
		n.cutFor(d, a, b)
		if both {
			n.cutFor(d, b, a)
		}
		return true
	}
}

func (n *nemesis) isolate(d time.Duration) bool {
	h, way := n.anyHost(), n.Random.IntN(3)
	for _, h := range []*host{h, h.mate} {
		if h != nil {
			n.cutFromAll(d, h, way)
		}
	}
	return true
}

// cutFromAll cuts the connections of a host with other processes, in one direction or both.
func (n *nemesis) cutFromAll(d time.Duration, h *host, way int) {
	for _, other := range n.hosts {
		if other == h || other == h.mate {
			continue
		}
		if way != 0 {
			n.cutFor(d, h, other)
		}
		if way != 1 {
			n.cutFor(d, other, h)
		}
	}
}

func percent(draw func(*nemesis) (what *int, to int)) func(*nemesis) bool {
	return forNetwork(func(n *nemesis, d time.Duration) bool {
		what, to := draw(n)
		n.detailf("of %d %% for %v", to, d)
		engine.SetFor(&n.World, d, what, to)
		return true
	})
}

func (n *nemesis) delay(d time.Duration) bool {
	engine.SetFor(&n.World, d, &n.Net.Delay, n.span(10*time.Millisecond, 4*time.Second))
	n.detailf("of up to %v for %v", n.Net.Delay, d)
	return true
}

func (n *nemesis) cutFor(d time.Duration, from, to *host) {
	n.detailf("%s -> %s for %v", from.label, to.label, d)
	engine.SetFor(&n.World, d, n.Net.Cuts(from.endpoint, to.endpoint), 1)
}

func (n *nemesis) slowStore(d time.Duration) {
	engine.SetFor(&n.World, d, &n.store.slow, n.span(50*time.Millisecond, 30*time.Second))
	n.detailf("by up to %v", n.store.slow)
}

func (n *nemesis) loseAnswers(d time.Duration) {
	engine.SetFor(&n.World, d, &n.store.unknown, 10+n.Random.IntN(80))
}

func (n *nemesis) staleStore(d time.Duration) { engine.SetFor(&n.World, d, &n.store.stale, true) }

func (n *nemesis) cutStore(d time.Duration) {
	m := n.anyManager()
	n.detailf("from %s", m.label)
	engine.SetFor(&n.World, d, &m.storeCut, true)
}

func (n *nemesis) stopStore(d time.Duration) {
	n.store.down = true
	n.after(d, n.store.up)
}
