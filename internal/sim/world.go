package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/protocol"
	"github.com/leasehold-dev/leasehold/internal/storage"
)

// A world is one run of the simulator: processes, a network, a store, a
// nemesis, and an oracle that sees everything at once.
type world struct {
	cfg    Config
	seed   uint64
	random *rand.Rand
	now    int64 // true time
	end    int64
	seq    uint64
	queue  queue

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
}

// space is a namespace of the world.
type space struct {
	index int
	name  leasehold.Namespace
	// vnodes keeps tables small: what matters is how ranges meet, not how many.
	vnodes int
	// home is where a session lives or lived.
	home map[leasehold.Session]*ownerHost
}

// A host is a place where a process runs, is stopped, dies and is started
// again.
type host struct {
	endpoint int32
	label    string
	alive    bool
	epoch    uint32 // counts the processes that ran here
	clock    clock

	stopped int64 // true time until which it is stopped, 0 if it runs
	asleep  bool  // it is suspended, not merely stopped
	inbox   []any // what arrived meanwhile

	wake  mono.Instant // when the machine wants to be woken
	alarm int64        // true time of the earliest timer set for that; 0 if none

	// deliver hands a message, or with nil the passing of time, to the process.
	deliver func(what any)
}

// inboxLimit bounds what a stopped process finds when it goes on: a socket
// buffer is finite too.
const inboxLimit = 64

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
		now:    int64(time.Second),
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
			home: make(map[leasehold.Session]*ownerHost),
		})
		w.oracle.addSpace()
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

func (w *world) addHost(label string) *host {
	h := &host{endpoint: int32(len(w.hosts)), label: label}
	w.hosts = append(w.hosts, h)
	return h
}

// start begins a new process on a host, with a clock of its own.
func (w *world) start(h *host) mono.Instant {
	h.alive = true
	h.epoch++
	h.stopped, h.asleep, h.inbox = 0, false, nil
	h.alarm = 0
	h.clock = clock{since: w.now, base: mono.Instant(w.random.Int64N(int64(1000 * time.Hour))), rate: w.nemesis.drawRate()}
	return h.clock.at(w.now)
}

// kill ends the process on a host.
func (w *world) kill(h *host) {
	h.alive = false
	h.stopped, h.asleep, h.inbox = 0, false, nil
}

// rand returns a random duration below d.
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
	w.seq++
	w.queue.push(event{at: w.now + int64(d), seq: w.seq, to: to, epoch: epoch, what: what})
}

// arm makes sure that a host is woken at its machine's next deadline: never
// early by much, sometimes late. An alarm that is already set earlier is left
// alone, since waking for nothing is harmless.
func (w *world) arm(h *host, wake mono.Instant) {
	h.wake = wake
	if wake == mono.Never {
		return
	}
	at := max(h.clock.when(wake), w.now)
	if h.alarm != 0 && h.alarm <= at || at > w.end+int64(time.Hour) {
		return
	}
	at += int64(w.below(lateTimers))
	if w.nemesis.starving {
		at += int64(w.below(starvedTimers))
	}
	h.alarm = at
	w.later(time.Duration(at-w.now), h.endpoint, h.epoch, timer{})
}

// run lets the world happen until it ends or something is violated.
func (w *world) run() {
	heal := w.now + int64(w.cfg.Duration)
	w.end = heal + int64(w.oracle.bound()) + int64(2*time.Second)
	for _, m := range w.managers {
		m.boot()
	}
	for _, o := range w.owners {
		o.boot(o.firstName())
	}
	for _, l := range w.lookups {
		l.boot()
	}
	w.later(w.nemesis.pause(), none, 0, strike{})
	w.later(w.cfg.Duration, none, 0, healing{})
	for w.queue.len() > 0 && w.failed == nil {
		e := w.queue.pop()
		if e.at > w.end {
			break
		}
		w.now = e.at
		w.stats.events++
		w.happen(&e)
	}
	w.oracle.finish()
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
			w.arrive(h, what)
		}
	default:
		if h.alive {
			w.arrive(h, what)
		}
	}
}

func (w *world) happenNowhere(what any) {
	switch what := what.(type) {
	case strike:
		w.nemesis.strike()
	case healing:
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

// ring is a timer going off. It may be early, because alarms are not moved
// back; then the machine is mostly left alone, and sometimes woken for nothing.
func (w *world) ring(h *host) {
	h.alarm = 0
	if h.stopped != 0 {
		return // going on will catch up
	}
	if h.clock.at(w.now) < h.wake && !w.chance(8) {
		w.arm(h, h.wake)
		return
	}
	w.trace.mix(uint64(w.now), uint64(h.endpoint))
	h.deliver(nil)
}

// arrive is a message reaching a host.
func (w *world) arrive(h *host, what any) {
	if h.stopped != 0 {
		if len(h.inbox) < inboxLimit {
			h.inbox = append(h.inbox, what)
		}
		return
	}
	w.trace.mix(uint64(w.now), uint64(h.endpoint)|1<<32)
	if w.trace.text != nil {
		w.trace.printf(w.now, "%s <- %s", h.label, describe(what))
	}
	h.deliver(what)
}

// stop halts a host for a while.
func (w *world) stop(h *host, d time.Duration, asleep bool) {
	if !h.alive || h.stopped != 0 {
		return
	}
	h.stopped = w.now + int64(d)
	h.asleep = asleep
	if asleep {
		h.clock.run(w.now, 0)
	}
	w.later(d, h.endpoint, h.epoch, resume{})
}

// goOn lets a stopped host run again: first it learns that it slept, if it
// did, then it finds what has arrived.
func (w *world) goOn(h *host) {
	asleep := h.asleep
	h.stopped, h.asleep = 0, false
	if asleep {
		h.clock.run(w.now, w.nemesis.drawRate())
	}
	w.trace.printf(w.now, "%s goes on", h.label)
	epoch, inbox := h.epoch, h.inbox
	h.inbox = nil
	if asleep {
		h.deliver(slept{})
	} else if w.chance(2) {
		h.deliver(nil) // the timer is first
	}
	for _, what := range inbox {
		if h.alive && h.epoch == epoch {
			h.deliver(what)
		}
	}
	if h.alive && h.epoch == epoch {
		h.deliver(nil)
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

// describe writes a message for the trace.
func describe(what any) string {
	switch m := what.(type) {
	case nil:
		return "time"
	case *protocol.LeaseRequest:
		return fmt.Sprintf("request %v #%d heard t%d#%d applied #%d leaving=%v leases %v", m.Holder, m.Seq, m.Term, m.Heard, m.Applied, m.Leaving, m.Leases)
	case *protocol.LeaseReply:
		return fmt.Sprintf("reply t%d#%d to %s echo #%d offers %v", m.Term, m.Seq, m.Session.Short(), m.Echo, m.Offers)
	case *protocol.LookupRequest:
		return fmt.Sprintf("lookup request #%d at lsn %d", m.Seq, m.LSN)
	case *protocol.LookupReply:
		return fmt.Sprintf("lookup reply t%d echo #%d lsn %d from %d, %d changes, snapshot %v", m.Term, m.Echo, m.LSN, m.From, len(m.Changes), m.Snapshot != nil)
	case *storeAnswer:
		return "store: " + m.String()
	case lookup.Event, owner.Event:
		return fmt.Sprintf("%T%+v", m, m)
	}
	return fmt.Sprintf("%T%+v", what, what)
}
