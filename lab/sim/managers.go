package sim

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
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
	// resigning: it has been told to, and will end.
	resigning bool
	storeCut  bool    // what it asks of the store gets lost
	lag       lag     // by how much what it asks is late
	memory    *memory // what it has instead of a store; nil if there is one
	nodeWake  mono.Instant
	// heard is when a lookup last spoke to us, in true time, 0 if never: first
	// the lookups, then the managers that follow us.
	heard   []int64
	unwell  int64 // until when something was wrong with it, in true time
	limped  int64 // when it last resigned because it limped, if no other has led since
	session leasehold.Session
	sent    map[renewal]mono.Instant // when it first sent a record
	// followers says, by manager, which process of it follows us.
	followers []followed
}

func (w *world) addManager(i int) {
	m := &managerHost{host: w.addHost(fmt.Sprintf("manager%d", i)), index: i, id: storage.ManagerID(fmt.Sprintf("m%d", i))}
	m.deliver = m.handle
	m.heard = make([]int64, w.cfg.Lookups+w.cfg.Managers)
	m.followers = make([]followed, w.cfg.Managers)
	w.managers = append(w.managers, m)
}

// timing of every simulated namespace to begin with, and the longest that it
// is ever given: the defaults.
func simTiming() protocol.Timing { return protocol.DefaultTiming() }

const (
	simTTL    = 3 * time.Second
	simGather = 500 * time.Millisecond // longest that a leader waits for others to join

	// Bounds of the simulated leaders: tight, so that they are reached.
	simLog         = 24
	simBatch       = 12
	simSeams       = 3
	simMoves       = 4               // that an owner may have under way, at most
	simMoveTimeout = 8 * time.Second // of a move that stands still

	// Times of the simulated standbys: a few polls fit into a lookup's patience,
	// and they forget what nobody asks for.
	simRelayPoll = 2 * time.Second
	simRelayIdle = 15 * time.Second

	// simRemember is for how long owners that have heard of higher terms are believed: so that some are not.
	simRemember = 40 * time.Second
)

func (m *managerHost) boot() {
	now := m.start()
	clear(m.heard)
	m.resigning, m.unwell, m.limped = false, m.Now, 0
	m.sent = make(map[renewal]mono.Instant)
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

func (m *managerHost) ask(ns leasehold.Namespace, term leasehold.Term, what any) {
	if m.memory != nil {
		m.memory.ask(ns, term, what)
		return
	}
	m.store.ask(m, ns, term, what)
}

// handle is something happening to the process, and what its own parts have to
// say to each other after that.
func (m *managerHost) handle(what any) {
	m.handleOne(what)
	if m.memory != nil && m.alive {
		m.memory.converse()
	}
}

func (m *managerHost) handleOne(what any) {
	now := m.now()
	m.oracle.noteDeleted(m.node.Catalog())
	switch what := what.(type) {
	case nil:
		m.do(m.node.Advance(now))
	case letter, councilRequest, councilResponse:
		m.memory.hear(what)
	case *protocol.LeaseRequest:
		m.noteHeard(what)
		m.do(m.node.Step(now, managerproc.Request{LeaseRequest: what}))
	case *protocol.LookupRequest:
		if i := what.Lookup; i < uint64(len(m.heard)) {
			m.heard[i] = m.Now
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
		m.forgetSent()
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
			m.ask(a.Namespace, a.Term, a)
		case managerproc.LoadCatalog:
			m.ask("", a.Term, a)
		case managerproc.Settle:
			m.Branches["node: promise settled"]++
			m.ask(a.Entry.Name, a.Term, a)
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
		case managerproc.RefuseOwner:
			m.tellOwner(a.Session, refused{leasehold.KindOf(a.Why)})
		case managerproc.RefuseLookup:
			m.answer(a.Lookup, lookup.Refused{From: m.id, Kind: leasehold.KindOf(a.Why)})
		case managerproc.RedirectOwner:
			m.tellOwner(a.Session, a.NotLeader)
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

// announce tells the owners of a namespace that are connected who leads. While nobody answers
// they ask everyone, so all are if no connection breaks.
func (m *managerHost) announce(a managerproc.Serves) {
	for _, o := range m.space(a.Namespace).owners {
		if m.cfg.Graceful || m.Chance(2) {
			m.send(m.endpoint, o.endpoint, protocol.NotLeader{Term: a.Term, Leader: m.id})
		}
	}
}

// refused says that there is no such namespace.
type refused struct{ kind leasehold.Kind }

// noteHeard notes when a leader last received a request of an owner. A hostile request may name no holder.
func (m *managerHost) noteHeard(r *protocol.LeaseRequest) {
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

// tellOwner sends something to an owner, in whatever namespace its session is.
func (m *managerHost) tellOwner(session leasehold.Session, what any) {
	for _, s := range m.spaces {
		if o := s.home[session]; o != nil {
			m.send(m.endpoint, o.endpoint, what)
		}
	}
}

func (m *managerHost) elect(a byrecord.Action) {
	switch a := a.(type) {
	case byrecord.Read:
		m.store.ask(m, "", 0, a)
	case byrecord.Swap:
		m.sends(a)
		m.store.ask(m, "", 0, a)
	case byrecord.Note:
		if m.memory == nil {
			m.note("election: ", a.What)
		}
		m.Printf("%s notes %v", m.label, setFields{a})
	case byrecord.Lead:
		m.oracle.leads(m, a)
		if !m.cfg.Graceful {
			for _, s := range m.spaces { // too early: some are sent away, and wait
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
			m.send(m.endpoint, o.endpoint, act.Reply)
		}
	case manager.Answer:
		m.answer(act.Lookup, act.Reply)
	case manager.Broadcast:
		m.broadcast(a.Namespace, act.Reply)
		m.oracle.recorded(m, a.Namespace)
	case manager.Commit, manager.ReadEnd, manager.SaveSnapshot:
		m.ask(a.Namespace, a.Term, act)
	case manager.Note:
		m.note("manager: ", act.What)
		if act.What == manager.NoteLogForgotten && m.store.era == 0 {
			m.Violated(engine.NoCrash, "%s finds that the log of %s ends at lsn %d and not at %d, and nobody else can have written", m.label, a.Namespace, act.LSN, act.OwnLSN)
		}
		m.Printf("%s notes %s", m.label, fieldsOf(act))
	}
}

// fieldsOf formats the fields of a note that are set.
func fieldsOf(note any) string {
	var b strings.Builder
	v := reflect.ValueOf(note)
	for i := range v.NumField() {
		if f := v.Field(i); i == 0 || !f.IsZero() {
			fmt.Fprintf(&b, " %s=%v", v.Type().Field(i).Name, f)
		}
	}
	return b.String()[1:]
}

// leading is a manager's part in a namespace that it leads.
type leading struct {
	*manager.Machine
	space *space
}

// leaders yields each living manager with each namespace that it leads in its own view.
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

// policy is one that can be made to fail.
type policy struct {
	partition.Policy
	nemesis *nemesis
}

func (p policy) Assign(in partition.Input) (partition.Assignment, error) {
	if !p.nemesis.misled {
		return p.Policy.Assign(in)
	}
	if p.nemesis.world.Chance(2) {
		return nil, leasehold.Errorf("policy", leasehold.ErrInternal, "", "out of its mind")
	}
	return []partition.Assignment{
		{{Start: 0, Owner: "nobody-knows"}},
		{{Start: 0}}, // nobody, although there are owners
		{{Start: 7}},
		nil,
	}[p.nemesis.world.Random.IntN(4)], nil
}
