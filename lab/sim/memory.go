package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	council "github.com/leasehold-dev/leasehold/internal/core/machine/memcatalog"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A memory is what a manager of a group without a store has instead of one: a
// part in the lease by which its group agrees who leads, a part in its council,
// which keeps the catalog, and the logs of what it leads. All of it dies with
// the process.
type memory struct {
	host *managerHost
	*world

	lock        *flease.Machine
	council     *council.Machine
	councilWake mono.Instant
	skew        time.Duration // of the wall clock from true time

	term leasehold.Term
	logs map[leasehold.Namespace]*stored
	// todo is what the process's parts have to say to its node, in order.
	todo  []managerproc.Event
	asker uint32 // the process whose request is being answered
	again bool   // the lease is over, and is to be had again
}

const leadership = "leader"

// Wall clocks of managers differ by less than simEpsilon.
const simEpsilon = 500 * time.Millisecond

// wallStart is what a true wall clock shows when a world begins.
const wallStart = flease.Wall(1_800_000_000_000_000_000)

func newMemory(m *managerHost, now mono.Instant) *memory {
	w := m.world
	d := &memory{host: m, world: w, councilWake: mono.Never, skew: w.Below(simEpsilon) - simEpsilon/2}
	var peers []flease.Process
	var ids []storage.ManagerID
	for i := range w.cfg.Managers {
		peers = append(peers, flease.Process(i+1))
		ids = append(ids, managerID(i))
	}
	d.lock = engine.Must(flease.New(d.time(), flease.Config{
		Self: flease.Process(m.index + 1), Incarnation: w.Random.Uint64() | 1, Peers: peers,
		Lease: simTTL, Epsilon: simEpsilon, Drift: simTiming().Drift, Rand: w.NewRand(),
	}))
	d.council = engine.Must(council.New(council.Config{Self: m.id, Process: w.Random.Uint64() | 1, Peers: ids, Longest: simTiming().Hold()}))
	d.acquire()
	return d
}

func managerID(i int) storage.ManagerID { return storage.ManagerID(fmt.Sprintf("m%d", i)) }

// time is what both clocks of the process show.
func (d *memory) time() flease.Time {
	return flease.Time{Mono: d.host.now(), Wall: wallStart.Add(time.Duration(d.Now) + d.skew)}
}

func (d *memory) acquire() {
	if err := d.lock.Acquire(d.time(), leadership); err != nil {
		panic(err)
	}
}

// lead begins with nothing: what was in memory is of an earlier term.
func (d *memory) lead(term leasehold.Term) {
	d.term, d.logs = term, make(map[leasehold.Namespace]*stored)
	if d.lastLead != 0 && time.Duration(d.Now-d.lastLead) < haste {
		d.Branches["node: hasty takeover"]++
	}
	d.lastLead = d.Now
}

// haste is how soon after one takeover another comes so soon that some owners may
// not have heard of the first.
const haste = 20 * time.Second

// stepDown gives the lease up: a term is led once. The next one is above a given one.
func (d *memory) stepDown(above leasehold.Term) {
	if above > 0 {
		if err := d.lock.Raise(d.time(), leadership, uint64(above)); err != nil {
			panic(err)
		}
	}
	d.advise(council.StepDown{})
	d.again = true
	d.lock.Release(d.time(), leadership)
}

type (
	// letter is what one manager's lock says to another's.
	letter struct {
		envelope flease.Envelope
		messages []flease.Message
	}
	// councilRequest and councilResponse are a call from one manager to another.
	// The answer reaches the process that asked or nobody.
	councilRequest struct {
		from    int
		epoch   uint32
		request *council.Request
	}
	councilResponse struct {
		from     int
		epoch    uint32
		response *council.Response
	}
)

// hear is another manager speaking to one of our parts.
func (d *memory) hear(what any) {
	switch what := what.(type) {
	case letter:
		d.lock.Receive(d.time(), &what.envelope, what.messages)
	case councilRequest:
		d.step(managerproc.Appointment{Event: bylease.Leads{Manager: managerID(what.from), Term: what.request.Term}})
		d.asker = what.epoch
		d.advise(council.Asked{From: managerID(what.from), Request: what.request})
	case councilResponse:
		if what.epoch == d.host.epoch && d.host.node.Leads(d.host.now()) {
			d.advise(council.Answered{From: managerID(what.from), Response: what.response})
		}
	}
}

// step lets the node hear something when it has done what it is doing.
func (d *memory) step(e managerproc.Event) { d.todo = append(d.todo, e) }

// advise steps our part in the council; a nil event is the passing of time.
func (d *memory) advise(e council.Event) {
	m := d.host
	now := m.now()
	var actions []council.Action
	if e == nil {
		actions, d.councilWake = d.council.Advance(now)
	} else {
		actions, d.councilWake = d.council.Step(now, e)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case council.Ask:
			d.send(m.endpoint, d.managers[d.managerIndex(a.To)].endpoint, councilRequest{m.index, m.epoch, a.Request})
		case council.Answer:
			d.send(m.endpoint, d.managers[d.managerIndex(a.To)].endpoint, councilResponse{m.index, d.asker, a.Response})
		case council.Loaded:
			d.oracle.checkCatalog(m, a.Catalog)
			if m.node.Leads(now) {
				d.oracle.settledOn(a.Catalog)
			}
			d.Printf("%s has the catalog of version %d", m.label, a.Catalog.Version)
			d.step(managerproc.Catalogued{Term: d.term, Catalog: a.Catalog})
		case council.Written:
			if a.Outcome == storage.Done && m.node.Leads(now) {
				d.oracle.settledOn(a.Catalog)
			}
			if a.Catalog != nil {
				d.step(managerproc.Catalogued{Term: d.term, Catalog: a.Catalog})
			}
		case council.Outranked:
			d.step(managerproc.Election{Event: byrecord.Outranked{By: a.By, Manager: true}})
		case council.Forgotten:
			d.Branches["council: forgotten"]++
			d.oracle.forgotten()
			d.Printf("%s finds that the catalog was forgotten", m.label)
		}
	}
}

// converse lets the parts of the process speak to each other until they have
// nothing to say any more.
func (d *memory) converse() {
	m := d.host
	now := m.now()
	if now >= d.councilWake {
		d.advise(nil)
	}
	d.lock.Advance(d.time())
	d.attend()
	for len(d.todo) > 0 && m.alive {
		e := d.todo[0]
		d.todo = d.todo[1:]
		m.do(m.node.Step(now, e))
		d.attend()
	}
	if !m.alive {
		return
	}
	d.lock.Flush(d.time(), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
		d.send(m.endpoint, d.managers[to-1].endpoint, letter{*e, slices.Clone(msgs)})
	})
	m.arm(min(m.nodeWake, d.councilWake, d.lock.Wake(d.time())))
}

func (d *memory) attend() {
	m := d.host
	for _, n := range d.lock.Notices() {
		d.note("lease: ", n.What)
		d.Printf("%s's lease: %v, fence %d", m.label, n.What, n.Lease.Fence)
		term, until := leasehold.Term(n.Lease.Fence), n.Lease.Until.Mono
		switch n.What {
		case flease.Acquired:
			d.step(managerproc.Appointment{Event: bylease.Appointed{Term: term, Until: until}})
		case flease.Renewed:
			d.step(managerproc.Appointment{Event: bylease.Extended{Term: term, Until: until}})
		case flease.Lost, flease.Released, flease.Unreachable, flease.Disputed:
			d.step(managerproc.Appointment{Event: bylease.Dismissed{}})
			d.again = true
		default: // the others change nothing about who leads
		}
	}
	if d.again && !m.resigning {
		d.again = false
		d.acquire()
	}
}

// ask is something that a manager with a store would ask of it.
func (d *memory) ask(ns leasehold.Namespace, term leasehold.Term, what any) {
	if term > d.term {
		d.lead(term)
	}
	if term != d.term {
		return
	}
	answer := func(e manager.Event) { d.step(managerproc.Manager{Namespace: ns, Term: term, Event: e}) }
	switch what := what.(type) {
	case manager.Commit:
		answer(manager.Committed{Outcome: d.commit(what.Batch)})
	case manager.ReadEnd:
		answer(manager.LogEnd{Term: d.term, LSN: d.state(ns).End()})
	case manager.SaveSnapshot:
		d.save(what.Snapshot)
	case managerproc.Load:
		d.step(managerproc.Loaded{Namespace: ns, Term: term, State: d.state(ns)})
	case managerproc.LoadCatalog:
		d.advise(council.Lead{Term: term})
	case managerproc.Settle:
		d.write(func(c *storage.Catalog) *storage.Catalog { return c.Settled(what.Entry) })
	case configure:
		d.write(func(c *storage.Catalog) *storage.Catalog {
			if what.remove {
				return c.Deleted(ns)
			}
			return c.Configured(d.space(ns).configured(what.timing))
		})
	}
}

// write has the catalog changed, if it is known and there is anything to change.
func (d *memory) write(change func(*storage.Catalog) *storage.Catalog) {
	c := d.host.node.Catalog()
	if c == nil {
		return
	}
	if next := change(c); next != nil {
		d.oracle.proposed(next)
		d.advise(council.Write{Prev: c.Version, Catalog: next})
	}
}

func (d *memory) state(ns leasehold.Namespace) *storage.State {
	if l := d.logs[ns]; l != nil {
		return l.state(d.term)
	}
	return &storage.State{Term: d.term, Unknown: true}
}

func (d *memory) commit(b *storage.Batch) storage.Outcome {
	l := d.logs[b.Namespace]
	if b.Term != d.term || l == nil || b.Prev != l.state(0).End() {
		return storage.Conflict
	}
	l.changes = append(l.changes, b.Changes...)
	d.oracle.committed(b, d.Now)
	return storage.Done
}

// save keeps a table. The first of a term is what the leader has found out.
func (d *memory) save(p *storage.Snapshot) {
	l := d.logs[p.Namespace]
	if l == nil {
		d.logs[p.Namespace] = &stored{table: p.Table}
		d.oracle.collected(d.host, p)
		return
	}
	l.save(p)
}
