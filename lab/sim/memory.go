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

// A memory is a diskless manager's replacement for a store: its Flease process, which elects the leader, its
// copy of the catalog, and the logs of the namespaces that it leads. All of it is lost with the process.
type memory struct {
	host *managerHost
	*world

	lock        *flease.Machine
	council     *council.Machine
	councilWake mono.Instant
	skew        time.Duration // of the wall clock relative to true time

	term leasehold.Term
	logs map[leasehold.Namespace]*stored
	// todo are the queued events for its managerproc machine, from the other parts.
	todo  []managerproc.Event
	asker uint32 // epoch of the process whose catalog request is being answered
	again bool   // the lease has ended, and must be acquired again
}

const leadership = "leader"

// Wall clocks of managers differ by less than simEpsilon.
const simEpsilon = 500 * time.Millisecond

// wallStart is the wall-clock time at the start of a world, without skew.
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
	d.council = engine.Must(council.New(council.Config{
		Self: m.id, Process: w.Random.Uint64() | 1, Peers: ids, Longest: simTiming().Hold(), Rebuild: w.cfg.Embedded,
	}))
	d.acquire()
	return d
}

func managerID(i int) storage.ManagerID { return storage.ManagerID(fmt.Sprintf("m%d", i)) }

// time returns the monotonic and the wall clock of the process.
func (d *memory) time() flease.Time {
	return flease.Time{Mono: d.host.now(), Wall: wallStart.Add(time.Duration(d.Now) + d.skew)}
}

func (d *memory) acquire() {
	if err := d.lock.Acquire(d.time(), leadership); err != nil {
		panic(err)
	}
}

// lead starts a term with empty logs: the logs in memory are those of an earlier term.
func (d *memory) lead(term leasehold.Term) {
	d.term, d.logs = term, make(map[leasehold.Namespace]*stored)
	if d.lastLead != 0 && time.Duration(d.Now-d.lastLead) < haste {
		d.Branches["node: hasty takeover"]++
	}
	d.lastLead = d.Now
}

// haste is the time between two takeovers below which some owners may not have received a message of the
// first leader.
const haste = 20 * time.Second

// stepDown releases the lease, since a manager leads only once per term. The next term is higher than above.
func (d *memory) stepDown(above leasehold.Term) {
	if above > 0 {
		if err := d.lock.Raise(d.time(), leadership, uint64(above)); err != nil {
			panic(err)
		}
	}
	d.stepCouncil(council.StepDown{})
	d.again = true
	d.lock.Release(d.time(), leadership)
}

type (
	// leaseMessage is a packet of the Flease machine.
	leaseMessage struct {
		envelope flease.Envelope
		messages []flease.Message
	}
	// councilRequest and councilResponse are a call about the catalog. As on a connection, only the process
	// that sent the request receives the response.
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

// receive passes a message of another manager to the part that it is for.
func (d *memory) receive(what any) {
	switch what := what.(type) {
	case leaseMessage:
		d.lock.Receive(d.time(), &what.envelope, what.messages)
	case councilRequest:
		d.queue(managerproc.Appointment{Event: bylease.Leads{Manager: managerID(what.from), Term: what.request.Term}})
		d.asker = what.epoch
		d.stepCouncil(council.Asked{From: managerID(what.from), Request: what.request})
	case councilResponse:
		if what.epoch == d.host.epoch && d.host.node.Leads(d.host.now()) {
			d.stepCouncil(council.Answered{From: managerID(what.from), Response: what.response})
		}
	}
}

// queue adds an event for the managerproc machine, which is processed after the current one.
func (d *memory) queue(e managerproc.Event) { d.todo = append(d.todo, e) }

// stepCouncil passes an event to the catalog machine; nil if time has passed.
func (d *memory) stepCouncil(e council.Event) {
	m := d.host
	now := m.now()
	var actions []council.Action
	blank := slices.ContainsFunc(d.managers, (*managerHost).blank)
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
				d.oracle.catalogCommitted(a.Catalog)
			}
			d.Printf("%s has the catalog of version %d", m.label, a.Catalog.Version)
			d.queue(managerproc.Catalogued{Term: d.term, Catalog: a.Catalog})
		case council.Written:
			if a.Outcome == storage.Done && m.node.Leads(now) {
				d.oracle.catalogCommitted(a.Catalog)
			}
			if a.Catalog != nil {
				d.queue(managerproc.Catalogued{Term: d.term, Catalog: a.Catalog})
			}
		case council.Outranked:
			d.queue(managerproc.Election{Event: byrecord.Outranked{By: a.By, Manager: true}})
		case council.Forgotten:
			d.Branches["memcatalog: catalog lost"]++
			d.oracle.catalogLost(m, blank)
			d.Printf("%s detects that a majority has lost the catalog", m.label)
		}
	}
}

// runParts passes events between the parts of the process until the queue is empty.
func (d *memory) runParts() {
	m := d.host
	now := m.now()
	if now >= d.councilWake {
		d.stepCouncil(nil)
	}
	d.lock.Advance(d.time())
	d.handleNotices()
	for len(d.todo) > 0 && m.alive {
		e := d.todo[0]
		d.todo = d.todo[1:]
		m.do(m.node.Step(now, e))
		d.handleNotices()
	}
	if !m.alive {
		return
	}
	d.lock.Flush(d.time(), func(to flease.Process, e *flease.Envelope, msgs []flease.Message) {
		d.send(m.endpoint, d.managers[to-1].endpoint, leaseMessage{*e, slices.Clone(msgs)})
	})
	m.arm(min(m.nodeWake, d.councilWake, d.lock.Wake(d.time())))
}

func (d *memory) handleNotices() {
	m := d.host
	for _, n := range d.lock.Notices() {
		d.note("lease: ", n.What)
		d.Printf("%s's lease: %v, fence %d", m.label, n.What, n.Lease.Fence)
		term, until := leasehold.Term(n.Lease.Fence), n.Lease.Until.Mono
		switch n.What {
		case flease.Acquired:
			d.queue(managerproc.Appointment{Event: bylease.Appointed{Term: term, Until: until}})
		case flease.Renewed:
			d.queue(managerproc.Appointment{Event: bylease.Extended{Term: term, Until: until}})
		case flease.Lost, flease.Released, flease.Unreachable, flease.Disputed:
			d.queue(managerproc.Appointment{Event: bylease.Dismissed{}})
			d.again = true
		default: // the other notices do not change the leader
		}
	}
	if d.again && !m.resigning {
		d.again = false
		d.acquire()
	}
}

// request executes a request to the store in memory.
func (d *memory) request(ns leasehold.Namespace, term leasehold.Term, what any) {
	if term > d.term {
		d.lead(term)
	}
	if term != d.term {
		return
	}
	answer := func(e manager.Event) { d.queue(managerproc.Manager{Namespace: ns, Term: term, Event: e}) }
	switch what := what.(type) {
	case manager.Commit:
		answer(manager.Committed{Outcome: d.commit(what.Batch)})
	case manager.ReadEnd:
		answer(manager.LogEnd{Term: d.term, LSN: d.state(ns).End()})
	case manager.SaveSnapshot:
		d.save(what.Snapshot)
	case managerproc.Load:
		d.queue(managerproc.Loaded{Namespace: ns, Term: term, State: d.state(ns)})
	case managerproc.LoadCatalog:
		d.stepCouncil(council.Lead{Term: term})
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

// write proposes a change of the catalog, if the catalog is known and the change is not empty.
func (d *memory) write(change func(*storage.Catalog) *storage.Catalog) {
	c := d.host.node.Catalog()
	if c == nil {
		return
	}
	if next := change(c); next != nil {
		d.oracle.catalogProposed(next)
		d.stepCouncil(council.Write{Prev: c.Version, Catalog: next})
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

// save keeps a snapshot. The first one of a term is the result of the census.
func (d *memory) save(p *storage.Snapshot) {
	l := d.logs[p.Namespace]
	if l == nil {
		d.logs[p.Namespace] = &stored{table: p.Table}
		d.oracle.censusDone(d.host, p)
		return
	}
	l.save(p)
}
