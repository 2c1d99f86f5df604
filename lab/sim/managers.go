package sim

import (
	"fmt"
	"iter"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/bylease"
	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/partition"
)

type managerHost struct {
	*host
	index int
	id    storage.ManagerID
	node  *managerproc.Machine
	// resigning: an operator shuts it down.
	resigning bool
	storeCut  bool    // its requests to the store are lost
	lag       lag     // additional latency of its requests to the store
	memory    *memory // nil with a store
	// owner is the owner in the same process; nil if there is none. admitting is the epoch of the process in
	// which it is about to start.
	owner     *ownerHost
	admitting uint32
	nodeWake  mono.Instant
	// lastRequest is the true time of the last request of each lookup, then of each manager that follows this
	// one; 0 if there is none.
	lastRequest []int64
	unwell      int64 // true time until which it had a fault
	limped      int64 // true time at which it resigned because of slow writes, 0 if another manager has led since
	session     leasehold.Session
	sent        map[renewal]mono.Instant // when it first sent a record
	// buried are the sessions whose death it has acknowledged, and the terms.
	buried map[protocol.Speaker]leasehold.Term
	// followers is the process of each other manager that follows this one.
	followers []followed
}

func (w *world) addManager(i int) {
	m := &managerHost{host: w.addHost(fmt.Sprintf("manager%d", i)), index: i, id: managerID(i)}
	m.deliver = m.handle
	m.lastRequest = make([]int64, w.cfg.Lookups+w.cfg.Managers)
	m.followers = make([]followed, w.cfg.Managers)
	w.managers = append(w.managers, m)
}

// simTiming returns the initial timing of every namespace, which is the default. It is also the longest that
// a namespace ever gets.
func simTiming() protocol.Timing { return protocol.DefaultTiming() }

const (
	simTTL    = 3 * time.Second
	simGather = 500 * time.Millisecond // maximum time that a leader waits for owners to join

	// Limits of the simulated leaders: low, so that they are reached.
	simLog         = 24
	simBatch       = 12
	simSeams       = 3
	simMoves       = 4               // maximum concurrent moves per owner
	simMoveTimeout = 8 * time.Second // of a move without progress

	// Times of the simulated standbys: a few polls fit into simStale, and idle relays are removed.
	simRelayPoll = 2 * time.Second
	simRelayIdle = 15 * time.Second

	// simRemember is the time for which reports of higher terms are accepted: short, so that some are too old.
	simRemember = 40 * time.Second
)

func (m *managerHost) boot() {
	if m.owner != nil {
		m.owner.end()
	}
	now := m.start()
	clear(m.lastRequest)
	m.resigning, m.unwell, m.limped = false, m.Now, 0
	m.sent, m.buried = make(map[renewal]mono.Instant), make(map[protocol.Speaker]leasehold.Term)
	snapshotEvery, batch := 1+m.Random.IntN(30), 4+m.Random.IntN(simBatch-3)
	gather, moves := m.nemesis.span(0, simGather), 1+m.Random.IntN(simMoves)
	cfg := managerproc.Config{
		RelayPoll: simRelayPoll, RelayIdle: simRelayIdle, Rand: m.NewRand(),
		Configure: func(n storage.Namespace) (manager.Config, error) {
			return manager.Config{
				Timing:    protocol.Timing{Lease: n.Lease, Renew: n.Renew, Drift: n.Drift},
				Policy:    policy{m.space(n.Name).policy, &m.nemesis},
				MaxOwners: n.MaxOwners, Seams: simSeams, Gather: gather,
				Log:   manager.LogLimits{Changes: simLog, Age: 20 * time.Second, SnapshotEvery: snapshotEvery, BatchChanges: batch},
				Moves: moves, MoveTimeout: simMoveTimeout, Churn: 1,
			}, nil
		},
	}
	if m.cfg.Diskless {
		cfg.Appointment = &bylease.Config{Self: m.id, Drift: simTiming().Drift, Fade: simTTL, Remember: simRemember}
		m.memory = newMemory(m, now)
	} else {
		m.session = engine.Must(leasehold.NewSession(randomBytes{m.Random}))
		cfg.Election = byrecord.Config{
			Self: m.id, Session: m.session,
			TTL: simTTL, Drift: simTiming().Drift, Rand: m.NewRand(), Boot: m.bootName(),
		}
	}
	m.node = engine.Must(managerproc.New(now, cfg))
	m.handle(nil)
}

func (m *managerHost) request(ns leasehold.Namespace, term leasehold.Term, what any) {
	if m.memory != nil {
		m.memory.request(ns, term, what)
		return
	}
	m.store.request(m, ns, term, what)
}

// handle passes an event to the process, and then runs the events between its own parts.
func (m *managerHost) handle(what any) {
	m.handleOne(what)
	if m.memory != nil && m.alive {
		m.memory.runParts()
	}
	m.admit()
}

func (m *managerHost) handleOne(what any) {
	now := m.now()
	m.oracle.noteDeleted(m.node.Catalog())
	switch what := what.(type) {
	case nil:
		m.do(m.node.Advance(now))
	case leaseMessage, councilRequest, councilResponse:
		m.memory.receive(what)
	case *protocol.LeaseRequest:
		m.recordRequest(what)
		m.do(m.node.Step(now, managerproc.Request{LeaseRequest: what}))
		m.oracle.checkBuried(m, what)
	case *deathReport:
		m.died(now, what)
	case *protocol.LookupRequest:
		if i := what.Lookup; i < uint64(len(m.lastRequest)) {
			m.lastRequest[i] = m.Now
		}
		m.do(m.node.Step(now, managerproc.Lookup{LookupRequest: what}))
	case *storeAnswer:
		m.do(m.node.Step(now, what.event))
	case watched:
		if what.epoch == m.epoch {
			m.do(m.node.Step(now, managerproc.Election{Event: what.seen}))
			m.oracle.checkWatched(m, what.seen.Record)
		}
	case followRequest:
		m.handleFollow(now, what)
	case followReply:
		if what.to == m && what.epoch == m.epoch {
			m.do(m.node.Step(now, managerproc.Followed{Namespace: what.ns, Event: what.event}))
		}
	case slept:
		m.resetSent()
		m.do(m.node.Step(now, managerproc.Slept{}))
	case managerproc.Event:
		m.do(m.node.Step(now, what))
	}
}

func (m *managerHost) do(actions []managerproc.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case managerproc.Elect:
			m.elect(a.Action)
		case managerproc.Manage:
			m.manage(a)
		case managerproc.Load:
			m.request(a.Namespace, a.Term, a)
		case managerproc.LoadCatalog:
			m.request("", a.Term, a)
		case managerproc.Settle:
			m.Branches["node: promise settled"]++
			m.request(a.Entry.Name, a.Term, a)
		case managerproc.Follow:
			if i := m.managerIndex(a.To); i >= 0 {
				m.send(m.endpoint, m.managers[i].endpoint, followRequest{m.index, m.epoch, a.Request})
			}
		case managerproc.Answer:
			m.answer(a.Lookup, a.Reply)
			m.Branches["node: standby answers a lookup"]++
		case managerproc.Relay:
			m.broadcast(a.Namespace, a.Reply)
		case managerproc.Note:
			m.Printf("%s, following %s, notes %v", m.label, a.Namespace, setFields{a.Note})
		case managerproc.Parked:
			m.Violated(engine.NoCrash, "%s cannot lead %s: %v", m.label, a.Namespace, a.Why)
		case managerproc.Serves:
			m.announce(a)
		case managerproc.DeathReply:
			m.replyDeath(a)
		case managerproc.RefuseOwner:
			m.sendToOwner(a.Session, refused{leasehold.KindOf(a.Why)})
		case managerproc.RefuseLookup:
			m.answer(a.Lookup, lookup.Refused{From: m.id, Kind: leasehold.KindOf(a.Why)})
		case managerproc.RedirectOwner:
			m.sendToOwner(a.Session, a.NotLeader)
		case managerproc.RedirectLookup:
			m.answer(a.Lookup, lookup.Redirect{From: m.id, NotLeader: a.NotLeader})
		}
		if !m.alive {
			return
		}
	}
	m.nodeWake = wake
	if m.memory == nil {
		m.arm(wake)
	}
}

// announce sends the new leader to the connected owners of a namespace. Without a reply owners send to all
// managers, so all of them are connected unless a connection breaks.
func (m *managerHost) announce(a managerproc.Serves) {
	for _, o := range m.space(a.Namespace).owners {
		if m.cfg.Graceful || m.Chance(2) {
			m.send(m.endpoint, o.endpoint, protocol.NotLeader{Term: a.Term, Leader: m.id})
		}
	}
}

// refused is the reply to an owner of a namespace that does not exist.
type refused struct{ kind leasehold.Kind }

// recordRequest records when a leader last received a request of an owner. A hostile request may have no holder.
func (m *managerHost) recordRequest(r *protocol.LeaseRequest) {
	for _, s := range m.spaces {
		if r.Holder == nil || s.name != r.Namespace || m.node.Manager(s.name) == nil {
			continue
		}
		from := s.home[r.Holder.Session]
		if from == nil {
			continue
		}
		if m.oracle.alone(from) {
			from.aloneUntil = m.Now
		}
		from.heardAt = m.Now
		for _, o := range s.owners {
			if o != from && o.aloneAt <= o.heardAt {
				o.aloneAt = m.Now
			}
		}
	}
}

// sendToOwner sends a message to the owner of a session, in any namespace.
func (m *managerHost) sendToOwner(session leasehold.Session, what any) {
	for _, s := range m.spaces {
		if o := s.home[session]; o != nil {
			m.send(m.endpoint, o.endpoint, what)
		}
	}
}

func (m *managerHost) elect(a byrecord.Action) {
	switch a := a.(type) {
	case byrecord.Read:
		m.store.request(m, "", 0, a)
	case byrecord.Swap:
		m.recordSwap(a)
		m.store.request(m, "", 0, a)
	case byrecord.Note:
		if m.memory == nil {
			m.note("election: ", a.What)
		}
		m.Printf("%s notes %v", m.label, setFields{a})
	case byrecord.Lead:
		m.oracle.leads(m, a)
		if !m.cfg.Graceful {
			for _, s := range m.spaces { // early, before the leader has loaded: requests are rejected or queued
				m.announce(managerproc.Serves{Namespace: s.name, Term: a.Term})
			}
		}
	case byrecord.StepDown:
		if m.memory != nil {
			m.memory.stepDown(a.Above)
		}
	case byrecord.Extend:
		m.oracle.authorized(m)
		m.oracle.checkOneLeader(m)
	case byrecord.Resigned:
		m.kill()
		m.nemesis.bootLater(m.host, m.boot)
	}
}

func (m *managerHost) manage(a managerproc.Manage) {
	switch act := a.Action.(type) {
	case manager.Send:
		s := m.space(a.Namespace)
		if o := s.home[act.Reply.Session]; o != nil {
			m.oracle.checkReply(m, o, act.Reply)
			m.send(m.endpoint, o.endpoint, act.Reply)
		}
	case manager.Answer:
		m.answer(act.Lookup, act.Reply)
	case manager.Broadcast:
		m.broadcast(a.Namespace, act.Reply)
		m.oracle.recorded(m, a.Namespace)
	case manager.Commit:
		m.oracle.checkDecided(m, act.Batch)
		m.request(a.Namespace, a.Term, act)
	case manager.ReadEnd, manager.SaveSnapshot:
		m.request(a.Namespace, a.Term, act)
	case manager.Note:
		m.note("manager: ", act.What)
		if act.What == manager.NoteLogForgotten && m.store.era == 0 {
			m.Violated(engine.NoCrash, "%s finds that the log of %s ends at lsn %d and not at %d, and there is no other writer", m.label, a.Namespace, act.LSN, act.OwnLSN)
		}
		m.Printf("%s notes %v", m.label, setFields{act})
	}
}

// leading is the machine of a namespace that a manager leads.
type leading struct {
	*manager.Machine
	space *space
}

// leaders yields each living manager with each namespace that it leads according to its own state.
func (w *world) leaders() iter.Seq2[*managerHost, leading] {
	return func(yield func(*managerHost, leading) bool) {
		for _, m := range w.managers {
			for _, s := range w.spaces {
				if machine := m.node.Manager(s.name); machine != nil && m.alive && !yield(m, leading{machine, s}) {
					return
				}
			}
		}
	}
}

func (w *world) space(name leasehold.Namespace) *space {
	for _, s := range w.spaces {
		if s.name == name {
			return s
		}
	}
	panic("no such namespace: " + name)
}

// policy is a policy that the nemesis can break.
type policy struct {
	partition.Policy
	nemesis *nemesis
}

func (p policy) Assign(in partition.Input) (partition.Assignment, error) {
	if !p.nemesis.policyBroken {
		return p.Policy.Assign(in)
	}
	p.nemesis.misplannedAt = p.nemesis.world.Now
	if p.nemesis.world.Chance(2) {
		return nil, leasehold.Errorf("policy", leasehold.ErrInternal, "", "broken by the nemesis")
	}
	return []partition.Assignment{
		{{Start: 0, Owner: "unknown"}},
		{{Start: 0}}, // no owner, although there are some
		{{Start: 7}},
		nil,
	}[p.nemesis.world.Random.IntN(4)], nil
}
