package fleasesim

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A nemesis makes trouble.
type nemesis struct {
	*world
	kinds   []int // of faults, each as often as the mix says
	amnesia bool  // processes die; if not, they are stopped instead
	starved bool  // alarms are late
	ahead   int64
}

func (n *nemesis) init(w *world) {
	n.world = w
	n.kinds = faults.Pick(w.cfg.Faults, func() bool { return false })
	engine.Zero(w.Faults, Kinds().Names()...)
	// Fences rise without memory only if wall clocks can be trusted. Where they
	// cannot, the other half of the claim is tested in worlds in which nobody
	// forgets.
	n.amnesia = w.kind != Mono || w.Chance(2)
}

// begin lets all clocks differ.
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

// rewind takes a process back to what it is now, after a while: a virtual machine
// that is restored from a snapshot. It can find that out only if its wall clock can
// be trusted; and what it believed in then, it believes in until it has looked at
// its clocks, so that it must have nothing.
func (n *nemesis) rewind(p *process) {
	if n.kind != Wall && n.kind != Both || !p.runs() || slices.ContainsFunc(p.stakes, func(s stake) bool { return s.held }) {
		return
	}
	p.ring() // a process looks at its clocks all the time: how long it had not is what hides a leap
	snapshot, epoch, monotonic := p.machine.Clone(), p.epoch, p.mono.At(n.Now)
	wishes := slices.Clone(p.stakes)
	n.After(2*n.epsilon+n.duration(), func() {
		if epoch != p.epoch || !p.runs() || n.after.phase != faulty {
			return
		}
		n.Printf("%s is taken back", p.label)
		p.machine = snapshot
		p.mono.Set(n.Now, monotonic)
		for i := range p.stakes {
			p.stakes[i] = stake{asked: wishes[i].asked, watched: wishes[i].watched, given: max(p.stakes[i].given, wishes[i].given)}
		}
		p.alarm = math.MaxInt64
		p.ring()
	})
}

// sprint lets a process have more tenures of a resource than there are milliseconds
// in the time that it is silent after a start. That is possible if it is alone in
// the group: then it takes no time at all.
func (n *nemesis) sprint(p *process) {
	for _, r := range n.resources {
		if len(r.members) > 1 || !p.member(r) || !p.runs() || p.machine.Retired() {
			continue
		}
		for range 3 * (lease + 2*n.epsilon) / time.Millisecond {
			if !p.stakes[r.index].held {
				p.ask(r, hold)
			}
			if !p.stakes[r.index].held || n.Violation != nil {
				break // it has to wait
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

// orphan lets everyone forget a lease but its holder, which hears of nothing, and
// lets the clocks go as is worst then, as far as the world allows: those of the
// holder are slow, and those of the others fast.
func (n *nemesis) orphan() {
	r := n.resources[n.Random.IntN(len(n.resources))]
	for _, p := range n.processes {
		if !p.believes(r) {
			continue
		}
		n.isolate(p, 2)
		n.skew(p, slowest, 300_000, -1)
		// A wall clock that is a little fast is not found out by the process
		// itself, and if those of all others are, not by them either.
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

// skew makes a process's clocks as wrong as the world allows, on the side of the
// sign.
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
	n.Printf("the clocks of %s go at %.2f, and wrong by %+d", p.label, float64(monotonic)/1e6, sign)
	p.reschedule()
}

func (n *nemesis) cut(from, to *process) {
	cuts := n.Net.Cuts(from.index, to.index)
	*cuts++
	n.After(n.duration(), func() { *cuts-- })
}

// isolate cuts a process off: what it sends, what it is sent, or both.
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

// worsen sets a percentage for a while, to one of some. Of two at a time, the first
// one's end ends both.
func (n *nemesis) worsen(what *int, to ...int) {
	percent := engine.Pick(n.Random, to...)
	engine.SetFor(&n.World, n.duration(), what, percent)
}

func (n *nemesis) changeRate(p *process) {
	r := []engine.Rate{slowest, fastest, slowest + engine.Rate(n.Random.Int64N(int64(fastest-slowest)))}[n.Random.IntN(3)]
	if n.kind == Wall && n.after.phase == faulty {
		r = []engine.Rate{0, 300_000, 3_000_000, 20_000_000, 300_000 + engine.Rate(n.Random.Int64N(2_700_000)), r}[n.Random.IntN(6)]
	}
	n.Printf("the monotonic clock of %s goes at %.2f", p.label, float64(r)/1e6)
	p.mono.Run(n.Now, r)
	p.reschedule()
}

// setWall sets a wall clock: to about the true time, or by any amount if the world
// allows it.
func (n *nemesis) setWall(p *process) {
	if n.kind != Mono {
		n.synchronise(p)
		return
	}
	most := []time.Duration{n.epsilon, lease, 3 * lease}[n.Random.IntN(3)]
	n.set(p, p.wall.At(n.Now).Add(n.span(-most, most)))
}

// synchronise sets a wall clock to within half of epsilon of true time.
func (n *nemesis) synchronise(p *process) {
	half := n.epsilon / 2
	off := []time.Duration{-half, half, n.span(-half, half)}[n.Random.IntN(3)]
	p.wall.Run(n.Now, engine.TrueRate)
	n.set(p, flease.Wall(n.Now).Add(off))
}

func (n *nemesis) set(p *process, to flease.Wall) {
	n.Printf("the wall clock of %s is set to %.3f", p.label, n.Seconds(int64(to)))
	n.look(p)
	p.wall.Set(n.Now, to)
	n.look(p)
	n.oracle.clockChanged(p)
}

// look remembers by how much a wall clock has been ahead of true time.
func (n *nemesis) look(p *process) { n.ahead = max(n.ahead, int64(p.wall.At(n.Now))-n.Now) }

// slew lets wall clocks drift, all of them or some in the same way, as if they
// followed one bad server; or sets some of them by the same amount.
func (n *nemesis) slew() {
	if n.kind != Mono {
		n.setWall(n.any())
		return
	}
	// A clock that is a little fast is not found out by the process itself.
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
		n.look(p)
		n.Printf("the wall clock of %s goes at %.2f", p.label, float64(r)/1e6)
		p.wall.Run(n.Now, r)
	}
}

// heal ends all faults: everything that is still under way arrives soon, or is
// lost.
func (n *nemesis) heal() {
	n.Net.Heal()
	n.starved = false
	for _, p := range n.processes {
		n.changeRate(p)
		n.synchronise(p)
		if p.paused != 0 {
			p.goOn()
		}
	}
	n.Queue.Revise(func(at int64, e *engine.Event) (int64, bool) {
		if _, arrives := e.What.(*packet); arrives {
			at = min(at, n.Now+int64(n.Below(n.usual)))
		}
		return at, true
	})
}
