package sim

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
	"github.com/leasehold-dev/leasehold/partition"
)

// A world is one run of the simulator: processes, a network, a store, a nemesis, and an oracle.
type world struct {
	engine.World
	cfg      Config
	heal     int64 // true time at which faults stop
	end      int64 // true time
	extended int   // how often end was postponed

	spaces   []*space
	managers []*managerHost
	owners   []*ownerHost
	lookups  []*lookupHost
	hosts    []*host // by endpoint: managers, owners, lookups

	reports []*deathReport // of all supervisors

	store   *store
	nemesis nemesis
	oracle  *oracle

	lastLead int64         // true time of the last takeover, without a store
	aged     time.Duration // added to all wall clocks: the age of restored backups
}

// space is a namespace of the world.
type space struct {
	index  int
	name   leasehold.Namespace
	owners []*ownerHost
	// vnodes is small, so that tables stay small: their size does not matter here.
	vnodes    int
	maxOwners int
	moves     bool // its application can move state
	balances  bool // its owners measure loads
	policy    partition.Policy
	// latest is the last session that was started under each name.
	latest map[leasehold.OwnerID]leasehold.Session
	// home is the host on which a session runs or ran.
	home map[leasehold.Session]*ownerHost
}

// configured returns the catalog entry that an operator would write.
func (s *space) configured(t protocol.Timing) storage.Namespace {
	return storage.Namespace{
		Name: s.name, Lease: t.Lease, Renew: t.Renew, Drift: t.Drift, VirtualNodes: s.vnodes, MaxOwners: s.maxOwners,
	}
}

// worldStart is the true time at which every world begins. It is not 0, because 0 means that an event has not
// happened.
const worldStart = int64(time.Second)

// Durations without faults.
const (
	calmDelay     = 5 * time.Millisecond // maximum one-way latency of the network and the store
	lateTimers    = 2 * time.Millisecond
	starvedTimers = 700 * time.Millisecond // on an overloaded processor
	storeWait     = 8 * time.Second        // maximum wait of a manager for the store
)

// Events of a process.
type (
	timer  struct{}
	resume struct{}
	slept  struct{} // the clock of the process stood still
)

func newWorld(cfg Config, seed uint64, text io.Writer) *world {
	w := &world{cfg: cfg}
	w.Init(seed, worldStart, text)
	w.countFromZero()
	w.store = &store{world: w, catalog: &storage.Catalog{}, logs: make(map[leasehold.Namespace]*stored)}
	w.oracle = &oracle{world: w}
	w.nemesis.world = w
	w.build()
	return w
}

func (w *world) build() {
	spaces := w.cfg.Namespaces
	if spaces == 0 {
		spaces = 1
		if w.cfg.Owners > 1 && w.Random.IntN(3) == 0 {
			spaces = 2
		}
	}
	for i := range spaces {
		vnodes := engine.Pick(w.Random, 1, 2, 2, 3, 4, 8)
		s := &space{
			index: i, name: leasehold.Namespace(fmt.Sprintf("ns%d", i)), vnodes: vnodes, maxOwners: w.cfg.Owners + 2,
			home: make(map[leasehold.Session]*ownerHost), latest: make(map[leasehold.OwnerID]leasehold.Session),
			moves: !w.Chance(4), balances: w.Chance(2),
			policy: engine.Pick[partition.Policy](w.Random,
				partition.Consistent{VirtualNodes: vnodes}, partition.Balanced{Ranges: vnodes}, partition.Adaptive{VirtualNodes: vnodes}),
		}
		w.spaces = append(w.spaces, s)
		w.oracle.addSpace()
		if !w.cfg.Diskless {
			w.store.configure(s.name, configure{timing: simTiming()})
		}
	}
	for i := range w.cfg.Managers {
		w.addManager(i)
	}
	for i := range w.cfg.Owners {
		w.addOwner(i, w.spaces[i%spaces])
	}
	if w.cfg.Embedded {
		w.embed()
	}
	for i := range w.cfg.Lookups {
		w.addLookup(i, w.spaces[i%spaces])
	}
	w.connect()
}

func (w *world) connect() {
	w.Net.Connect(len(w.hosts))
	w.Net.Least, w.Net.Most = 100*time.Microsecond, calmDelay
	w.Net.Repeat = func() time.Duration { return w.nemesis.span(0, 12*time.Second) }
	w.Net.Route = func(to int32) int32 {
		if p := w.nemesis.misrouted; p > 0 && w.Random.IntN(100) < p {
			return w.misroute(to)
		}
		return to
	}
}

// misroute returns a random endpoint of the same kind. It can be the right one.
func (w *world) misroute(to int32) int32 {
	managers, owners := int32(len(w.managers)), int32(len(w.owners))
	switch {
	case to < managers:
		return w.Random.Int32N(managers)
	case to < managers+owners:
		return managers + w.Random.Int32N(owners)
	}
	return managers + owners + w.Random.Int32N(int32(len(w.lookups)))
}

func (w *world) send(from, to int32, what any) {
	w.Messages++
	w.Net.Send(from, to, what)
}

// run executes events until the world ends or an invariant is violated.
func (w *world) run() {
	w.heal = w.Now + int64(w.cfg.Duration)
	w.end = w.heal + int64(w.oracle.bound()) + int64(2*time.Second)
	if w.cfg.Supervised {
		w.end += int64(2 * prompt) // the crashes at the end
	}
	if w.cfg.Agents {
		w.end += int64(time.Minute) // cleanup waits for agents' promises, one after the other
	}
	for _, m := range w.managers {
		m.boot()
	}
	for _, o := range w.owners {
		if o.manager == nil {
			o.boot(o.firstName())
		}
	}
	for _, l := range w.lookups {
		l.boot()
	}
	for _, s := range w.spaces {
		if w.cfg.Diskless {
			w.nemesis.provide(s)
		}
	}
	w.oracle.pollLimping()
	w.After(w.nemesis.pause(), w.nemesis.strike)
	w.After(w.cfg.Duration, w.stopFaults)
	for w.Queue.Len() > 0 && w.Violation == nil {
		if w.Queue.Earliest() > w.end && !w.extend() {
			break
		}
		e := w.Next()
		w.dispatch(&e)
	}
	w.oracle.finish()
}

// extend prolongs the world while a leader still moves or merges ranges, by at most a minute: the checks at the end
// hold only when that is complete. Between two merges there is no move.
func (w *world) extend() bool {
	if w.extended == 30 || !w.oracle.moving() && !slices.ContainsFunc(w.oracle.leaderSizes(), unmerged) {
		return false
	}
	w.extended++
	w.end += int64(2 * time.Second)
	return true
}

func (w *world) dispatch(e *engine.Event) {
	if e.To == engine.Nowhere {
		w.happenNowhere(e.What)
		return
	}
	h := w.hosts[e.To]
	switch what := e.What.(type) {
	case timer:
		if e.Epoch == h.epoch && e.At == h.alarm && h.alive {
			h.fire()
		}
	case resume:
		if e.Epoch == h.epoch && h.alive && h.stopped != 0 && w.Now >= h.stopped {
			h.unstop()
		}
	case deathReply:
		what.receive()
	case *storeAnswer:
		if e.Epoch == h.epoch && h.alive && !what.request.done {
			what.request.done = true
			h.receive(e)
		}
	default:
		if h.alive {
			h.receive(e)
		}
	}
}

func (w *world) happenNowhere(what any) {
	switch what := what.(type) {
	case *storeRequest:
		w.store.serve(what)
	case *giveUp:
		r := what.request
		w.store.answer(r, Unanswered(r.ns, r.term, r.what), 0)
	case func():
		what()
	}
}

// stopFaults ends the faults, unless an outage has prolonged the world. I6 is checked after the recovery
// bound.
func (w *world) stopFaults() {
	if w.Now < w.heal {
		w.After(time.Duration(w.heal-w.Now), w.stopFaults)
		return
	}
	w.nemesis.heal()
	w.After(w.oracle.bound(), w.oracle.recovered)
	if w.cfg.Supervised {
		w.After(w.oracle.bound()+prompt, w.oracle.crashesAtTheEnd)
	}
}

func (w *world) managerIndex(id storage.ManagerID) int {
	for i, m := range w.managers {
		if m.id == id {
			return i
		}
	}
	return -1
}

func (w *world) managerIDs() (ids []storage.ManagerID) {
	for _, m := range w.managers {
		ids = append(ids, m.id)
	}
	return ids
}

func (w *world) toManagers(from *host, to storage.ManagerID, what any) {
	if to != "" {
		if i := w.managerIndex(to); i >= 0 {
			w.send(from.endpoint, w.managers[i].endpoint, what)
		}
		return
	}
	for _, m := range w.managers {
		w.send(from.endpoint, m.endpoint, what)
	}
}
