package fleasesim

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// Durations that are the same in every world. Only their ratios matter. The seed chooses epsilon and the
// latency of the network.
const (
	lease      = time.Second
	drift      = mono.Drift(1.2)
	worldStart = int64(time.Hour) // true time; not 0, because 0 means that an event has not happened
	maxEvents  = 3_000_000        // per world: more are an endless loop
)

// A world is one run of the simulator.
type world struct {
	engine.World
	cfg  Config
	kind Kind
	over bool

	epsilon   time.Duration
	pace      time.Duration // approximate interval between requests of an application
	greeting  bool          // waiting processes send greetings, so they also read their clocks more often
	processes []*process
	byID      map[flease.Process][]*process // several with the same ID only with twins
	resources []*resource

	usual time.Duration // maximum latency of a packet without faults

	nemesis nemesis
	oracle  oracle
	after   aftermath
}

// A resource is a resource that at most one process may hold.
type resource struct {
	index   int
	name    string
	members []flease.Process
}

func newWorld(cfg Config, seed uint64, text io.Writer) *world {
	w := &world{cfg: cfg, kind: cfg.Kind, byID: map[flease.Process][]*process{}}
	w.Init(seed, worldStart, text)
	if w.kind == Any {
		w.kind = engine.Pick(w.Random, Wall, Wall, Wall, Wall, Mono, Mono, Mono, Mono, Both, Both, Both, Twins)
	}
	w.Kind = string(w.kind)
	w.epsilon = engine.Pick[time.Duration](w.Random, 10, 50, 100, 300, 600) * time.Millisecond
	w.pace = engine.Pick[time.Duration](w.Random, 100, 300, 1000) * time.Millisecond
	w.greeting = w.kind == Twins || w.Chance(4)
	w.build()
	w.connect()
	w.nemesis.init(w)
	w.oracle.init(w)
	w.after.world = w
	return w
}

func (w *world) build() {
	n := w.cfg.Processes
	if n == 0 {
		n = minProcesses + w.Random.IntN(maxProcesses-minProcesses+1)
	}
	resources := w.cfg.Resources
	if resources == 0 {
		resources = 1 + w.Random.IntN(maxResources)
	}
	ids := make([]flease.Process, n)
	for i := range ids {
		ids[i] = flease.Process(i + 1)
	}
	for i := range resources {
		size := engine.Pick(w.Random, 1, 2, 3, 3, 3, 4, 5)
		members := slices.Clone(ids)
		w.Random.Shuffle(n, func(i, j int) { members[i], members[j] = members[j], members[i] })
		w.resources = append(w.resources, &resource{i, fmt.Sprintf("r%d", i), members[:min(size, n)]})
	}
	for _, id := range ids {
		w.addProcess(id, ids)
	}
	if w.kind == Twins {
		w.addProcess(ids[w.Random.IntN(n)], ids)
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

func (w *world) span(low, high time.Duration) time.Duration { return low + w.Below(high-low+1) }

// Events of a process.
type (
	alarm  struct{} // timer of a machine
	resume struct{} // after a pause
	action struct{} // of the application
)

// run executes events until the world is over or an invariant is violated.
func (w *world) run() {
	for _, p := range w.processes {
		w.After(w.Below(lease/2), p.boot)
		w.Later(w.Below(2*w.pace), p.index, 0, action{})
	}
	w.nemesis.begin()
	w.After(w.cfg.Duration, w.after.heal)
	for w.Queue.Len() > 0 && w.Violation == nil && !w.over {
		e := w.Next()
		w.dispatch(&e)
		if w.Events > maxEvents {
			w.Violated(L6Bounded, "%d events: endless loop", w.Events)
		}
	}
}

func (w *world) dispatch(e *engine.Event) {
	if do, ok := e.What.(func()); ok {
		w.Mix(uint64(e.At), 4<<32)
		do()
		return
	}
	p := w.processes[e.To]
	mix := func(kind uint64) { w.Mix(uint64(e.At), kind<<32|uint64(e.To)) }
	switch what := e.What.(type) {
	case *packet:
		mix(0)
		p.receive(what)
	case alarm:
		mix(1)
		if e.At == p.alarm && e.Epoch == p.epoch {
			p.fire()
		}
	case resume:
		mix(2)
		if e.Epoch == p.epoch && p.paused != 0 && w.Now >= p.paused {
			p.unpause()
		}
	case action:
		mix(3)
		p.act()
		w.Later(w.span(w.pace/10, 2*w.pace), p.index, 0, action{})
	}
}

// Run runs the world of a seed. The configuration must be valid.
func (c *Config) Run(seed uint64, text io.Writer) *engine.Result {
	w := newWorld(*c, seed, text)
	return w.Guard(w.run)
}

// Unreachable reports whether campaigns are not expected to reach a branch.
func (*Config) Unreachable(string) bool { return false }
