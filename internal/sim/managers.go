package sim

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/election"
	"github.com/leasehold-dev/leasehold/internal/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/machine/node"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/partition"
)

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
	simSeams = 3
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
			MaxOwners: w.cfg.Owners + 2, Seams: simSeams, LogChanges: simLog, LogAge: 20 * time.Second,
			SnapshotEvery: 1 + w.random.IntN(30), BatchChanges: 4 + w.random.IntN(simBatch-3),
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
