package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// must is for configurations that the simulator makes itself.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// newRand gives a machine randomness of its own, so that what one draws does
// not depend on what another does.
func (w *world) newRand() *rand.Rand { return rand.New(rand.NewPCG(w.random.Uint64(), 1)) }

// A managerHost runs manager processes.
type managerHost struct {
	*host
	world *world
	id    storage.ManagerID
	node  *node.Machine
	// resigning: it has been told to, and will end.
	resigning bool
	storeCut  bool    // what it asks of the store gets lost
	heard     []int64 // by lookup: true time at which it last spoke to us, 0 if never
}

func (w *world) addManager(i int) {
	m := &managerHost{host: w.addHost(fmt.Sprintf("manager%d", i)), world: w, id: storage.ManagerID(fmt.Sprintf("m%d", i))}
	m.deliver = m.handle
	m.heard = make([]int64, w.cfg.Lookups)
	w.managers = append(w.managers, m)
}

// timing of every simulated namespace: the defaults.
func simTiming() protocol.Timing { return protocol.DefaultTiming() }

const simTTL = 3 * time.Second

// Bounds of the simulated leaders: tight, so that they are reached.
const (
	simLog   = 24
	simBatch = 12
)

func (m *managerHost) boot() {
	w := m.world
	now := w.start(m.host)
	clear(m.heard)
	m.resigning = false
	cfg := node.Config{Election: election.Config{Self: m.id, Session: must(leasehold.NewSession(randomBytes{w.random})), TTL: simTTL, Drift: simTiming().Drift, Rand: w.newRand()}}
	for _, s := range w.spaces {
		cfg.Namespaces = append(cfg.Namespaces, manager.Config{
			Namespace: s.name, Self: m.id, Timing: simTiming(), Rand: w.newRand(),
			Policy:    policy{partition.Consistent{VirtualNodes: s.vnodes}, &w.nemesis},
			MaxOwners: w.cfg.Owners + 2, LogChanges: simLog, LogAge: 20 * time.Second,
			SnapshotEvery: 1 + w.random.IntN(30), BatchChanges: 2 + w.random.IntN(simBatch-1),
		})
	}
	m.node = must(node.New(now, cfg))
	m.do(m.node.Advance(now))
}

func (m *managerHost) handle(what any) {
	now := m.clock.at(m.world.now)
	switch what := what.(type) {
	case nil:
		m.do(m.node.Advance(now))
	case *protocol.LeaseRequest:
		m.do(m.node.Step(now, node.Request{LeaseRequest: what}))
	case *protocol.LookupRequest:
		if i := what.Lookup; i < uint64(len(m.heard)) {
			m.heard[i] = m.world.now
		}
		m.do(m.node.Step(now, node.Lookup{LookupRequest: what}))
	case *storeAnswer:
		m.do(m.node.Step(now, what.event))
	case slept:
		m.do(m.node.Step(now, node.Election{Event: election.Slept{}}))
	case node.Event:
		m.do(m.node.Step(now, what))
	}
}

func (m *managerHost) do(actions []node.Action, wake mono.Instant) {
	w := m.world
	for _, a := range actions {
		switch a := a.(type) {
		case node.Elect:
			m.elect(a.Action)
		case node.Manage:
			m.manage(a)
		case node.Load:
			w.store.ask(m, a.Namespace, a.Term, a)
		case node.RedirectOwner:
			for _, s := range w.spaces {
				if o := s.home[a.Session]; o != nil {
					w.net.send(m.endpoint, o.endpoint, a.NotLeader)
				}
			}
		case node.RedirectLookup:
			if a.Lookup < uint64(len(w.lookups)) {
				w.net.send(m.endpoint, w.lookups[a.Lookup].endpoint, a.NotLeader)
			}
		}
		if !m.alive {
			return
		}
	}
	w.arm(m.host, wake)
}

func (m *managerHost) elect(a election.Action) {
	w := m.world
	switch a := a.(type) {
	case election.Read, election.Swap:
		w.store.ask(m, "", 0, a)
	case election.Note:
		w.stats.elections[a.What]++
		w.trace.printf(w.now, "%s notes %v (%d, %d)", m.label, a.What, a.Have, a.Want)
	case election.Lead:
		w.oracle.leads(m, a)
	case election.Extend:
		w.oracle.checkOneLeader(m)
	case election.Resigned:
		w.kill(m.host)
		w.nemesis.bootLater(m.host, m.boot)
	}
}

func (m *managerHost) manage(a node.Manage) {
	w := m.world
	switch act := a.Action.(type) {
	case manager.Send:
		s := w.space(a.Namespace)
		if o := s.home[act.Reply.Session]; o != nil {
			w.net.send(m.endpoint, o.endpoint, act.Reply)
		}
	case manager.Answer:
		if act.Lookup < uint64(len(w.lookups)) {
			w.net.send(m.endpoint, w.lookups[act.Lookup].endpoint, act.Reply)
		}
	case manager.Broadcast:
		for i, l := range w.lookups {
			if m.heard[i] != 0 && l.space.name == a.Namespace {
				w.net.send(m.endpoint, l.endpoint, act.Reply)
			}
		}
		w.oracle.recorded(m, a.Namespace)
	case manager.Commit, manager.ReadEnd, manager.SaveSnapshot:
		w.store.ask(m, a.Namespace, a.Term, act)
	case manager.Note:
		w.stats.managers[act.What]++
		w.trace.printf(w.now, "%s notes %v %v (%d, %d)", m.label, act.What, act.Owner, act.Have, act.Want)
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

// policy is consistent hashing that can be made to fail.
type policy struct {
	partition.Consistent
	nemesis *nemesis
}

func (p policy) Assign(in partition.Input) (partition.Assignment, error) {
	if !p.nemesis.misled {
		return p.Consistent.Assign(in)
	}
	if p.nemesis.world.chance(2) {
		return nil, leasehold.Errorf("policy", leasehold.Internal, "", "out of its mind")
	}
	return partition.Assignment{{Start: 0, Owner: "nobody-knows"}}, nil
}

// An ownerHost runs owner processes of one namespace.
type ownerHost struct {
	*host
	world   *world
	space   *space
	machine *owner.Machine
	holder  *table.Holder
	view    *owner.View
	beyond  bool // its clock is slower than the bound allows
	leaving bool // it has been told to, and will end
	ops     []*operation
}

func (w *world) addOwner(i int, s *space) {
	o := &ownerHost{host: w.addHost(fmt.Sprintf("owner%d", i)), world: w, space: s}
	o.deliver = o.handle
	w.owners = append(w.owners, o)
}

func (o *ownerHost) firstName() leasehold.OwnerID {
	return leasehold.OwnerID(fmt.Sprintf("%c%d", 'a'+rune(o.space.index), o.endpoint))
}

// boot starts a new session under a name.
func (o *ownerHost) boot(name leasehold.OwnerID) {
	w := o.world
	now := w.start(o.host)
	session := must(leasehold.NewSession(randomBytes{w.random}))
	// One process may take part in two namespaces: it has one session then.
	if len(w.spaces) > 1 && w.chance(2) {
		if other := w.owners[w.random.IntN(len(w.owners))]; other.space != o.space && other.alive && o.space.home[other.holder.Session] == nil {
			session = other.holder.Session
		}
	}
	o.holder = &table.Holder{
		Owner: name, Session: session, Addr: o.label,
		Weight: []float64{1, 1, 1, 0.5, 2}[w.random.IntN(5)], Process: fmt.Sprintf("%s/%d", o.label, o.epoch),
	}
	o.space.home[session] = o
	o.beyond, o.leaving, o.ops = false, false, nil
	o.machine = must(owner.New(now, owner.Config{Namespace: o.space.name, Holder: o.holder, Rand: w.newRand()}))
	o.view = o.machine.View()
	w.trace.printf(w.now, "%s starts %v", o.label, o.holder)
	w.oracle.ownerStarted(o)
	o.do(o.machine.Advance(now))
}

type randomBytes struct{ *rand.Rand }

func (r randomBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

func (o *ownerHost) handle(what any) {
	w := o.world
	now := o.clock.at(w.now)
	switch what := what.(type) {
	case nil:
		o.do(o.machine.Advance(now))
	case *protocol.LeaseReply:
		o.do(o.machine.Step(now, owner.Reply{LeaseReply: what}))
	case protocol.NotLeader:
		o.do(o.machine.Step(now, owner.Redirect{NotLeader: what}))
	case slept:
		o.do(o.machine.Step(now, owner.Slept{}))
	case owner.Event:
		o.do(o.machine.Step(now, what))
	case *operation:
		o.finishOperation(what)
		return
	}
	if o.alive && w.chance(4) {
		o.operate()
	}
}

func (o *ownerHost) do(actions []owner.Action, wake mono.Instant) {
	w := o.world
	for _, a := range actions {
		switch a := a.(type) {
		case owner.Send:
			w.oracle.ownerSends(o, a.Request)
			w.toManagers(o.host, a.To, a.Request)
		case owner.Publish:
			w.oracle.ownerPublishes(o, o.view, a.View)
			o.view = a.View
		case owner.GrantedLeases:
			w.oracle.ownerGranted(o, a.Leases)
		case owner.FindPredecessor:
			o.findPredecessor(a.Incumbent)
		case owner.Left:
			w.kill(o.host)
			w.nemesis.ownerBack(o)
		case owner.Note:
			w.stats.owners[a.What]++
			w.trace.printf(w.now, "%s notes %v (%d, %d)", o.label, a.What, a.Have, a.Want)
		}
	}
	if !o.alive {
		return
	}
	w.arm(o.host, wake)
	w.oracle.ownerStepped(o)
}

// findPredecessor is what a shell does with the process table of its machine:
// it can see only processes on its own host.
func (o *ownerHost) findPredecessor(h *table.Holder) {
	w := o.world
	if h.Process == o.holder.Process || h.Addr != o.label {
		return
	}
	// Every earlier process of this host is gone: hosts run one at a time.
	w.later(time.Millisecond, o.endpoint, 0, owner.PredecessorGone{Session: h.Session})
}

// valid reports whether the owner's checks can succeed now.
func (o *ownerHost) valid() bool {
	if !o.alive || o.asleep || len(o.view.Leases) == 0 {
		return false
	}
	return o.world.cfg.LeasesOff || o.clock.at(o.world.now) < o.view.Until
}

// A lookupHost runs lookups of one namespace.
type lookupHost struct {
	*host
	world   *world
	space   *space
	index   int
	machine *lookup.Machine
	watch   lookupWatch
}

func (w *world) addLookup(i int, s *space) {
	l := &lookupHost{host: w.addHost(fmt.Sprintf("lookup%d", i)), world: w, space: s, index: i}
	l.deliver = l.handle
	w.lookups = append(w.lookups, l)
}

// Times of the simulated lookups: shorter than the defaults, so that a cut of
// seconds matters.
const (
	simPoll  = 4 * time.Second
	simStale = 12 * time.Second
)

func (l *lookupHost) boot() {
	w := l.world
	now := w.start(l.host)
	l.machine = must(lookup.New(now, lookup.Config{
		Namespace: l.space.name, ID: uint64(l.index), Poll: simPoll, Stale: simStale, Rand: w.newRand(),
	}))
	l.watch = lookupWatch{}
	l.do(l.machine.Advance(now))
}

func (l *lookupHost) handle(what any) {
	now := l.clock.at(l.world.now)
	switch what := what.(type) {
	case nil:
		l.do(l.machine.Advance(now))
	case *protocol.LookupReply:
		l.do(l.machine.Step(now, lookup.Reply{LookupReply: what}))
	case protocol.NotLeader:
		l.do(l.machine.Step(now, lookup.Redirect{NotLeader: what}))
	case slept:
		l.do(l.machine.Step(now, lookup.Slept{}))
	case lookup.Event:
		l.do(l.machine.Step(now, what))
	}
}

func (l *lookupHost) do(actions []lookup.Action, wake mono.Instant) {
	w := l.world
	step := lookupStep{}
	for _, a := range actions {
		switch a := a.(type) {
		case lookup.Send:
			w.toManagers(l.host, a.To, a.Request)
		case lookup.Publish:
			step.table = a.Table
		case lookup.Losses:
			step.losses = append(step.losses, a.Losses...)
		case lookup.Note:
			step.snapshot = step.snapshot || a.What == lookup.NoteSnapshot
			w.stats.lookups[a.What]++
			w.trace.printf(w.now, "%s notes %v (%d, %d)", l.label, a.What, a.Have, a.Want)
		}
	}
	w.arm(l.host, wake)
	w.oracle.lookupStepped(l, &step)
}
