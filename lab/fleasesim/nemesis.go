package fleasesim

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A nemesis injects faults.
type nemesis struct {
	*world
	kinds   []int // indices of faults, repeated by weight
	amnesia bool  // crashed processes lose their memory; if false, they are stopped instead
	starved bool  // timers are late
	ahead   int64
}

func (n *nemesis) init(w *world) {
	n.world = w
	n.kinds = faults.Pick(w.cfg.Faults, func() bool { return false })
	engine.Zero(w.Faults, Kinds().Names()...)
	// Without memory, fences rise only if wall clocks are reliable. For unreliable ones, half of the worlds
	// have no loss of memory.
	n.amnesia = w.kind != Mono || w.Chance(2)
}

// begin makes all clocks differ.
func (n *nemesis) begin() {
	for _, p := range n.processes {
		n.changeRate(p)
		n.synchronise(p)
	}
	n.After(n.interval(), n.strike)
}

func (n *nemesis) interval() time.Duration { return n.span(lease/20, lease*3/4) }

func (n *nemesis) duration() time.Duration {
	return n.span(lease/10, engine.Pick(n.Random, lease/2, lease, 4*lease))
}

func (n *nemesis) lateness() time.Duration {
	most := time.Millisecond
	if n.starved {
		most = lease / 2
	}
	return time.Microsecond + n.Below(most)
}

func (n *nemesis) any() *process { return engine.Pick(n.Random, n.processes...) }

func (n *nemesis) strike() {
	if n.after.phase != faulty || len(n.kinds) == 0 {
		return
	}
	f := &faults[n.kinds[n.Random.IntN(len(n.kinds))]]
	n.Faults[f.Name]++
	n.Printf("*** %s", f.Name)
	f.Inflict(n)
	n.After(n.interval(), n.strike)
}

// rewind resets a process to its present state after a while, like a virtual machine that is restored from a
// snapshot. It can detect that only if its wall clock is reliable. It would use the leases in the snapshot
// until it reads its clocks again, so it must have none.
func (n *nemesis) rewind(p *process) {
	if n.kind != Wall && n.kind != Both || !p.runs() || slices.ContainsFunc(p.stakes, func(s stake) bool { return s.held }) {
		return
	}
	p.fire() // a real process reads its clocks continuously; a long gap would hide the jump
	snapshot, epoch, monotonic := p.machine.Clone(), p.epoch, p.mono.At(n.Now)
	wishes := slices.Clone(p.stakes)
	n.After(2*n.epsilon+n.duration(), func() {
		if epoch != p.epoch || !p.runs() || n.after.phase != faulty {
			return
		}
		n.Printf("%s is reset to a snapshot", p.label)
		p.machine = snapshot
		p.mono.Set(n.Now, monotonic)
		for i := range p.stakes {
			p.stakes[i] = stake{asked: wishes[i].asked, watched: wishes[i].watched, given: max(p.stakes[i].given, wishes[i].given)}
		}
		p.alarm = math.MaxInt64
		p.fire()
	})
}

// sprint makes a process have more tenures of a resource than there are milliseconds in its silent time after
// a start. That is possible if it is alone in the group: then an acquisition takes no time.
func (n *nemesis) sprint(p *process) {
	for _, r := range n.resources {
		if len(r.members) > 1 || !p.member(r) || !p.runs() || p.machine.Retired() {
			continue
		}
		for range 3 * (lease + 2*n.epsilon) / time.Millisecond {
			if !p.stakes[r.index].held {
				p.request(r, hold)
			}
			if !p.stakes[r.index].held || n.Violation != nil {
				break // the lease is not available at once
			}
			p.release(r)
		}
	}
}

func (n *nemesis) crash(p *process) {
	if n.after.phase != faulty {
		return
	}
	if !n.amnesia {
		p.stop(n.duration())
		return
	}
	p.die()
	n.After([]time.Duration{0, n.duration()}[n.Random.IntN(2)], p.boot)
}

// orphan restarts all members of a holder's group without memory, cuts the holder off, and skews the clocks
// for the worst case within the limits of the world: those of the holder are slow, and those of the others
// fast.
func (n *nemesis) orphan() {
	r := n.resources[n.Random.IntN(len(n.resources))]
	for _, p := range n.processes {
		if !p.holds(r) {
			continue
		}
		n.isolate(p, 2)
		n.skew(p, slowest, 300_000, -1)
		// A wall clock that is slightly fast is not detected by the process itself, nor by the others if
		// theirs are fast too.
		fast := engine.TrueRate + engine.Rate(n.Random.Int64N(300_000))
		for _, other := range n.processes {
			if other != p && other.member(r) && n.amnesia {
				n.skew(other, fastest, fast, 1)
				other.die()
				other.boot()
			}
		}
		return
	}
}

// skew makes a process's clocks deviate as far as the world allows, in the direction of the sign.
func (n *nemesis) skew(p *process, monotonic, wall engine.Rate, sign int64) {
	to := flease.Wall(n.Now + sign*int64(n.epsilon/2))
	switch n.kind {
	case Wall:
		monotonic, wall = []engine.Rate{300_000, 3_000_000}[(sign+1)/2], engine.TrueRate
	case Mono:
		if sign < 0 {
			to = p.wall.At(n.Now) // it must not end the lease
		}
	default:
		wall = engine.TrueRate
	}
	n.set(p, to)
	p.wall.Run(n.Now, wall)
	p.mono.Run(n.Now, monotonic)
	n.Printf("the clocks of %s run at %.2f, with an error in direction %+d", p.label, float64(monotonic)/1e6, sign)
	p.reschedule()
}

func (n *nemesis) cut(from, to *process) {
	cuts := n.Net.Cuts(from.index, to.index)
	*cuts++
	n.After(n.duration(), func() { *cuts-- })
}

// isolate cuts a process off: its outgoing packets, its incoming packets, or both.
func (n *nemesis) isolate(p *process, how int) {
	for _, other := range n.processes {
		if how != 0 {
			n.cut(p, other)
		}
		if how != 1 {
			n.cut(other, p)
		}
	}
}

// worsen sets a percentage for a while, to one of some values. If two overlap, the end of the first ends
// both.
func (n *nemesis) worsen(what *int, to ...int) {
	percent := engine.Pick(n.Random, to...)
	engine.SetFor(&n.World, n.duration(), what, percent)
}

func (n *nemesis) changeRate(p *process) {
	r := []engine.Rate{slowest, fastest, slowest + engine.Rate(n.Random.Int64N(int64(fastest-slowest)))}[n.Random.IntN(3)]
	if n.kind == Wall && n.after.phase == faulty {
		r = []engine.Rate{0, 300_000, 3_000_000, 20_000_000, 300_000 + engine.Rate(n.Random.Int64N(2_700_000)), r}[n.Random.IntN(6)]
	}
	n.Printf("the monotonic clock of %s runs at %.2f", p.label, float64(r)/1e6)
	p.mono.Run(n.Now, r)
	p.reschedule()
}

// setWall sets a wall clock: to about the true time, or to any time if the world allows it.
func (n *nemesis) setWall(p *process) {
	if n.kind != Mono {
		n.synchronise(p)
		return
	}
	most := []time.Duration{n.epsilon, lease, 3 * lease}[n.Random.IntN(3)]
	n.set(p, p.wall.At(n.Now).Add(n.span(-most, most)))
}

// synchronise sets a wall clock to at most half of epsilon from true time.
func (n *nemesis) synchronise(p *process) {
	half := n.epsilon / 2
	off := []time.Duration{-half, half, n.span(-half, half)}[n.Random.IntN(3)]
	p.wall.Run(n.Now, engine.TrueRate)
	n.set(p, flease.Wall(n.Now).Add(off))
}

func (n *nemesis) set(p *process, to flease.Wall) {
	n.Printf("the wall clock of %s is set to %.3f", p.label, n.Seconds(int64(to)))
	n.recordAhead(p)
	p.wall.Set(n.Now, to)
	n.recordAhead(p)
	n.oracle.clockChanged(p)
}

// recordAhead records how far a wall clock has been ahead of true time.
func (n *nemesis) recordAhead(p *process) { n.ahead = max(n.ahead, int64(p.wall.At(n.Now))-n.Now) }

// slew makes wall clocks drift, all of them or some in the same way, as if they followed one bad server; or
// sets some of them by the same amount.
func (n *nemesis) slew() {
	if n.kind != Mono {
		n.setWall(n.any())
		return
	}
	// A clock that is slightly fast is not detected by the process itself.
	r := []engine.Rate{300_000, 3_000_000, 300_000 + engine.Rate(n.Random.Int64N(2_700_000)), engine.TrueRate, engine.TrueRate + engine.Rate(n.Random.Int64N(300_000))}[n.Random.IntN(5)]
	by := n.span(-lease, lease)
	together := n.Chance(2)
	for _, p := range n.processes {
		if !n.Chance(2) {
			continue
		}
		if together {
			n.set(p, p.wall.At(n.Now).Add(by))
		}
		n.recordAhead(p)
		n.Printf("the wall clock of %s runs at %.2f", p.label, float64(r)/1e6)
		p.wall.Run(n.Now, r)
	}
}

// heal ends all faults: all packets in flight arrive soon, or are lost.
func (n *nemesis) heal() {
	n.Net.Heal()
	n.starved = false
	for _, p := range n.processes {
		n.changeRate(p)
		n.synchronise(p)
		if p.paused != 0 {
			p.unpause()
		}
	}
	n.Queue.Revise(func(at int64, e *engine.Event) (int64, bool) {
		if _, arrives := e.What.(*packet); arrives {
			at = min(at, n.Now+int64(n.Below(n.usual)))
		}
		return at, true
	})
}
