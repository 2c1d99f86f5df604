package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
	"github.com/leasehold-dev/leasehold/internal/timeline"
	"github.com/leasehold-dev/leasehold/partition"
)

// A world is one run of the simulator: processes, a network, a store, a
// nemesis, and an oracle that sees everything at once.
type world struct {
	cfg      Config
	seed     uint64
	random   *rand.Rand
	now      int64 // true time
	heal     int64 // when faults stop
	end      int64
	extended int // how often end was put off
	queue    timeline.Timeline[event]

	spaces   []*space
	managers []*managerHost
	owners   []*ownerHost
	lookups  []*lookupHost
	hosts    []*host // by endpoint: managers, owners, lookups

	net     network
	store   *store
	nemesis nemesis
	oracle  *oracle
	stats   stats
	trace   trace
	failed  *Violation

	lastLead int64         // when a manager last took over, where there is no store
	aged     time.Duration // how much time has passed on wall clocks that nobody has lived through
}

// space is a namespace of the world.
type space struct {
	index int
	name  leasehold.Namespace
	// vnodes keeps tables small: what matters is how ranges meet, not how many.
	vnodes    int
	maxOwners int
	moves     bool // its application can move state
	balances  bool // its owners measure loads
	policy    partition.Policy
	// latest is the session that has last been started under a name.
	latest map[leasehold.OwnerID]leasehold.Session
	// home is where a session lives or lived.
	home map[leasehold.Session]*ownerHost
}

// configured is the namespace as an operator creates it.
func (s *space) configured(t protocol.Timing) storage.Namespace {
	return storage.Namespace{
		Name: s.name, Lease: t.Lease, Renew: t.Renew, Drift: t.Drift, VirtualNodes: s.vnodes, MaxOwners: s.maxOwners,
	}
}

// worldStart is the true time at which every world begins: not 0, which means
// that something has not happened.
const worldStart = int64(time.Second)

// Times of the calm world, in which faults are rare events.
const (
	calmDelay     = 5 * time.Millisecond // most that a message or a store takes, one way
	lateTimers    = 2 * time.Millisecond
	starvedTimers = 700 * time.Millisecond // while the processor is elsewhere
	storeWait     = 8 * time.Second        // most that a manager waits for the store
)

// What a woken process or the nemesis finds in the queue.
type (
	timer    struct{}
	resume   struct{}
	strike   struct{} // the nemesis acts
	healing  struct{} // the nemesis stops
	deadline struct{} // I6 is due
	slept    struct{} // the process finds that its clock stood still
)

func newWorld(cfg Config, seed uint64, tr trace) *world {
	w := &world{
		cfg: cfg, seed: seed, trace: tr,
		random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		now:    worldStart,
		stats:  newStats(),
	}
	w.trace.hash = 0xcbf29ce484222325 ^ seed
	w.store = newStore(w)
	w.oracle = newOracle(w)
	w.nemesis.world = w
	w.net.world = w
	w.build()
	return w
}

func (w *world) build() {
	spaces := w.cfg.Namespaces
	if spaces == 0 {
		spaces = 1
		if w.cfg.Owners > 1 && w.random.IntN(3) == 0 {
			spaces = 2
		}
	}
	for i := range spaces {
		vnodes := []int{1, 2, 2, 3, 4, 8}[w.random.IntN(6)]
		w.spaces = append(w.spaces, &space{
			index: i, name: leasehold.Namespace(fmt.Sprintf("ns%d", i)), vnodes: vnodes,
			home: make(map[leasehold.Session]*ownerHost), latest: make(map[leasehold.OwnerID]leasehold.Session),
		})
		w.oracle.addSpace()
		w.spaces[i].maxOwners = w.cfg.Owners + 2
		w.spaces[i].moves = w.random.IntN(4) > 0
		w.spaces[i].balances = w.chance(2)
		w.spaces[i].policy = []partition.Policy{
			partition.Consistent{VirtualNodes: vnodes}, partition.Balanced{Ranges: vnodes}, partition.Adaptive{VirtualNodes: vnodes},
		}[w.random.IntN(3)]
		if !w.cfg.Diskless {
			w.store.configure(w.spaces[i].name, configure{timing: simTiming()})
		}
	}
	for i := range w.cfg.Managers {
		w.addManager(i)
	}
	for i := range w.cfg.Owners {
		w.addOwner(i, w.spaces[i%spaces])
	}
	for i := range w.cfg.Lookups {
		w.addLookup(i, w.spaces[i%spaces])
	}
	w.net.init(len(w.hosts))
}

// below returns a random duration below d.
func (w *world) below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.random.Int64N(int64(d)))
}

// chance is true once in n.
func (w *world) chance(n int) bool { return w.random.IntN(n) == 0 }

// later puts an event into the queue.
func (w *world) later(d time.Duration, to int32, epoch uint32, what any) {
	w.push(event{at: w.now + int64(d), from: none, to: to, epoch: epoch, what: what})
}

func (w *world) push(e event) { w.queue.Add(e.at, e) }

// post puts a message into the queue.
func (w *world) post(d time.Duration, from, to int32, what any) {
	w.push(event{at: w.now + int64(d), from: from, to: to, what: what})
}

// run lets the world happen until it ends or something is violated.
func (w *world) run() {
	w.heal = w.now + int64(w.cfg.Duration)
	w.end = w.heal + int64(w.oracle.bound()) + int64(2*time.Second)
	if w.cfg.Agents {
		w.end += int64(time.Minute) // whatever is tidied up waits for promises, one step after the other
	}
	for _, m := range w.managers {
		m.boot()
	}
	for _, o := range w.owners {
		o.boot(o.firstName())
	}
	for _, l := range w.lookups {
		l.boot()
	}
	for _, s := range w.spaces {
		if w.cfg.Diskless {
			w.nemesis.provide(s)
		}
	}
	w.oracle.watchOverLimping()
	w.later(w.nemesis.pause(), none, 0, strike{})
	w.later(w.cfg.Duration, none, 0, healing{})
	for w.queue.Len() > 0 && w.failed == nil {
		at, e := w.queue.Next()
		if at > w.end && !w.goesOn() {
			break
		}
		w.now, e.at = at, at
		w.stats.events++
		w.happen(&e)
	}
	w.oracle.finish()
}

// goesOn makes the world longer while a leader still moves ranges, at most by a minute: what is
// checked at the end holds when all is quiet.
func (w *world) goesOn() bool {
	if w.extended == 30 || !w.oracle.moving() {
		return false
	}
	w.extended++
	w.end += int64(2 * time.Second)
	return true
}

func (w *world) happen(e *event) {
	if e.to == none {
		w.happenNowhere(e.what)
		return
	}
	h := w.hosts[e.to]
	switch what := e.what.(type) {
	case timer:
		if e.epoch == h.epoch && e.at == h.alarm && h.alive {
			w.ring(h)
		}
	case resume:
		if e.epoch == h.epoch && h.alive && h.stopped != 0 && w.now >= h.stopped {
			w.goOn(h)
		}
	case *storeAnswer:
		if e.epoch == h.epoch && h.alive && !what.request.done {
			what.request.done = true
			w.arrive(h, e)
		}
	default:
		if h.alive {
			w.arrive(h, e)
		}
	}
}

func (w *world) happenNowhere(what any) {
	switch what := what.(type) {
	case strike:
		w.nemesis.strike()
	case healing:
		if w.now < w.heal { // an outage has made the world longer
			w.later(time.Duration(w.heal-w.now), none, 0, what)
			return
		}
		w.nemesis.heal()
		w.later(w.oracle.bound(), none, 0, deadline{})
	case deadline:
		w.oracle.recovered()
	case *storeRequest:
		w.store.serve(what)
	case *giveUp:
		w.store.answer(what.request, w.store.unanswered(what.request), 0)
	case func():
		what()
	}
}

// managerIndex finds a manager by its name, -1 if there is none.
func (w *world) managerIndex(id storage.ManagerID) int {
	for i, m := range w.managers {
		if m.id == id {
			return i
		}
	}
	return -1
}

// toManagers sends a message to one manager, or to all of them.
func (w *world) toManagers(from *host, to storage.ManagerID, what any) {
	if to != "" {
		if i := w.managerIndex(to); i >= 0 {
			w.net.send(from.endpoint, w.managers[i].endpoint, what)
		}
		return
	}
	for _, m := range w.managers {
		w.net.send(from.endpoint, m.endpoint, what)
	}
}
