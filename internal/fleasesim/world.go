package fleasesim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/timeline"
)

// Times that are the same in every world. What matters is how they relate to
// each other; epsilon and the network's delay, the seed chooses.
const (
	lease      = time.Second
	drift      = mono.Drift(1.2)
	worldStart = int64(time.Hour) // on true time; not 0, which means that something has not happened
	maxEvents  = 3_000_000        // in a world: more are a loop that does not end
)

// A world is one run of the simulator.
type world struct {
	cfg    Config
	seed   uint64
	kind   Kind
	random *rand.Rand
	now    int64 // true time
	queue  timeline.Timeline[event]
	over   bool

	epsilon   time.Duration
	pace      time.Duration // of the applications: about so often each does something
	greeting  bool          // those who wait greet the others; who does looks at its clocks more often
	processes []*process
	byID      map[flease.Process][]*process // more than one of each only in the world of twins
	resources []*resource

	net     network
	nemesis nemesis
	oracle  oracle
	after   aftermath
	stats   stats
	trace   trace
	failed  *Violation
}

// A resource is something that processes want to have alone.
type resource struct {
	index   int
	name    string
	members []flease.Process
}

func newWorld(cfg Config, seed uint64, tr trace) *world {
	w := &world{
		cfg: cfg, seed: seed, kind: cfg.Kind, trace: tr, now: worldStart,
		random: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		byID:   map[flease.Process][]*process{},
	}
	w.trace.hash = 0xcbf29ce484222325 ^ seed
	if w.kind == Any {
		w.kind = []Kind{Wall, Wall, Wall, Wall, Mono, Mono, Mono, Mono, Both, Both, Both, Twins}[w.random.IntN(12)]
	}
	w.epsilon = milliseconds(w.random, 10, 50, 100, 300, 600)
	w.pace = milliseconds(w.random, 100, 300, 1000)
	w.greeting = w.kind == Twins || w.chance(4)
	w.build()
	w.net.init(w)
	w.nemesis.init(w)
	w.oracle.init(w)
	w.after.world = w
	return w
}

func (w *world) build() {
	n := w.cfg.Processes
	if n == 0 {
		n = minProcesses + w.random.IntN(maxProcesses-minProcesses+1)
	}
	resources := w.cfg.Resources
	if resources == 0 {
		resources = 1 + w.random.IntN(maxResources)
	}
	ids := make([]flease.Process, n)
	for i := range ids {
		ids[i] = flease.Process(i + 1)
	}
	for i := range resources {
		size := []int{1, 2, 3, 3, 3, 4, 5}[w.random.IntN(7)]
		members := slices.Clone(ids)
		w.random.Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
		w.resources = append(w.resources, &resource{i, fmt.Sprintf("r%d", i), members[:min(size, n)]})
	}
	for _, id := range ids {
		w.addProcess(id, ids)
	}
	if w.kind == Twins {
		w.addProcess(ids[w.random.IntN(n)], ids)
	}
}

func (w *world) resource(name string) *resource {
	for _, r := range w.resources {
		if r.name == name {
			return r
		}
	}
	return nil
}

// below returns a random duration below d.
func (w *world) below(d time.Duration) time.Duration {
	return time.Duration(w.random.Int64N(int64(max(d, 1))))
}

// span returns a random duration from low to high.
func (w *world) span(low, high time.Duration) time.Duration { return low + w.below(high-low+1) }

// chance is true once in n.
func (w *world) chance(n int) bool { return w.random.IntN(n) == 0 }

// push puts an event into the queue.
func (w *world) push(e event) { w.queue.Add(e.at, e) }

// later does something after a while, whatever happens meanwhile.
func (w *world) later(d time.Duration, do func()) {
	w.push(event{at: w.now + int64(d), what: effect, do: do})
}

// run lets the world happen until it is over or something is violated.
func (w *world) run() {
	for _, p := range w.processes {
		w.later(w.below(lease/2), p.boot)
		w.push(event{at: w.now + int64(w.below(2*w.pace)), what: action, to: p.index})
	}
	w.nemesis.begin()
	w.later(w.cfg.Duration, w.after.heal)
	for w.queue.Len() > 0 && w.failed == nil && !w.over {
		at, e := w.queue.Next()
		w.now, e.at = at, at
		w.stats.events++
		w.trace.mix(uint64(e.at), uint64(e.what)<<32|uint64(e.to))
		w.happen(&e)
		if w.stats.events > maxEvents {
			w.oracle.violated(L6Bounded, "%d events have happened: something goes on for ever", w.stats.events)
		}
	}
}

func (w *world) happen(e *event) {
	if e.what == effect {
		e.do()
		return
	}
	p := w.processes[e.to]
	switch e.what {
	case arrival:
		p.receive(e.mail)
	case alarm:
		if e.at == p.alarm && e.epoch == p.epoch {
			p.ring()
		}
	case resume:
		if e.epoch == p.epoch && p.paused != 0 && w.now >= p.paused {
			p.goOn()
		}
	case action:
		p.act()
		w.push(event{at: w.now + int64(w.span(w.pace/10, 2*w.pace)), what: action, to: p.index})
	case effect:
	}
}

// milliseconds draws one of some lengths of time.
func milliseconds(r *rand.Rand, choices ...int64) time.Duration {
	return time.Duration(choices[r.IntN(len(choices))] * int64(time.Millisecond))
}
