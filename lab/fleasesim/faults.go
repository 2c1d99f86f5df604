package fleasesim

import (
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// The rates of monotonic clocks within the drift bound: their ratio is the bound, 1.2.
const (
	slowest engine.Rate = 920_000
	fastest engine.Rate = 1_104_000
)

// faults are the kinds of faults, with their default weights.
var faults = engine.Faults[*nemesis]{
	fault("crash", 10, onAny((*nemesis).crash)),                                     // a process crashes, and restarts without memory
	fault("crash-all", 1, (*nemesis).crashAll),                                      // all processes crash at about the same time
	fault("orphan", 3, (*nemesis).orphan),                                           // a holder is cut off, and all others of its group restart without memory
	fault("pause", 8, onAny(func(n *nemesis, p *process) { p.stop(n.duration()) })), // a process is stopped, while its clocks run on
	fault("link-cut", 8, (*nemesis).cutLink),                                        // packets between two processes are lost
	fault("one-way", 8, func(n *nemesis) { n.cut(n.any(), n.any()) }),               // packets from one process to another are lost
	fault("isolate", 6, func(n *nemesis) { n.isolate(n.any(), n.Random.IntN(3)) }),  // all packets to or from a process are lost, or both
	fault("loss", 5, func(n *nemesis) { n.worsen(&n.Net.Loss, 10, 30, 60) }),        // packets are lost
	fault("duplicate", 6, func(n *nemesis) { n.worsen(&n.Net.Duplicate, 20, 60) }),  // packets are duplicated, the duplicates perhaps much later
	fault("delay", 8, (*nemesis).delay),                                             // packets are delayed and reordered
	fault("rate", 8, onAny((*nemesis).changeRate)),                                  // a monotonic clock changes its rate, within the limits of the world
	fault("step", 6, onAny((*nemesis).setWall)),                                     // a wall clock is set, within the limits of the world
	fault("slew", 6, (*nemesis).slew),                                               // wall clocks drift, some of them together, if the world allows it
	fault("starve", 3, (*nemesis).starve),                                           // timers are late
	fault("rewind", 3, onAny((*nemesis).rewind)),                                    // a process is reset to an earlier snapshot, with its monotonic clock
	fault("sprint", 2, onAny((*nemesis).sprint)),                                    // a process acquires and releases a resource of its own as fast as possible
}

func fault(name string, weight int, inflict func(*nemesis)) engine.Fault[*nemesis] {
	return engine.Fault[*nemesis]{Kind: engine.Kind{Name: name, Weight: weight}, Inflict: func(n *nemesis) bool {
		inflict(n)
		return true
	}}
}

// Kinds returns the kinds of faults, with the default mix.
func Kinds() engine.Kinds { return faults.Kinds() }

func onAny(hit func(*nemesis, *process)) func(*nemesis) {
	return func(n *nemesis) { hit(n, n.any()) }
}

func (n *nemesis) crashAll() {
	for _, p := range n.processes {
		n.After(n.Below(lease/4), func() { n.crash(p) })
	}
}

func (n *nemesis) cutLink() {
	a, b := n.any(), n.any()
	n.cut(a, b)
	n.cut(b, a)
}

func (n *nemesis) starve() { engine.SetFor(&n.World, n.duration(), &n.starved, true) }

func (n *nemesis) delay() {
	n.Net.Delay = engine.Pick(n.Random, lease/10, lease/2, 3*lease)
	n.Net.Delayed = engine.Pick(n.Random, 10, 50, 100)
	n.After(n.duration(), func() { n.Net.Delay, n.Net.Delayed = 0, 0 })
}
