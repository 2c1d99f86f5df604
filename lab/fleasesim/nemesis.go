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
	world   *world
	kinds   []int // of faults, each as often as the mix says
	amnesia bool  // processes die; if not, they are stopped instead
	starved int   // how many faults make alarms late
	ahead   int64
}

func (n *nemesis) init(w *world) {
	n.world = w
	n.kinds = faults.Pick(w.cfg.Faults, func() bool { return false })
	for i := range faults {
		w.Faults[faults[i].Name] = 0
	}
	// Fences rise without memory only if wall clocks can be trusted. Where they
	// cannot, the other half of the claim is tested in worlds in which nobody
	// forgets.
	n.amnesia = w.kind != Mono || w.Chance(2)
}

// begin lets all clocks differ.
func (n *nemesis) begin() {
	for _, p := range n.world.processes {
		n.changeRate(p)
		n.synchronise(p)
	}
	n.world.After(n.interval(), n.strike)
}

// interval is the time between two faults.
func (n *nemesis) interval() time.Duration { return n.world.span(lease/20, lease*3/4) }

// duration is how long a fault lasts.
func (n *nemesis) duration() time.Duration {
	return n.world.span(lease/10, []time.Duration{lease / 2, lease, 4 * lease}[n.world.Random.IntN(3)])
}

// lateness is by how much an alarm is late.
func (n *nemesis) lateness() time.Duration {
	if n.starved > 0 {
		return time.Microsecond + n.world.Below(lease/2)
	}
	return time.Microsecond + n.world.Below(time.Millisecond)
}

func (n *nemesis) any() *process {
	return n.world.processes[n.world.Random.IntN(len(n.world.processes))]
}

// strike makes a fault happen, and the next one later.
func (n *nemesis) strike() {
	w := n.world
	if w.after.phase != faulty || len(n.kinds) == 0 {
		return
	}
	f := &faults[n.kinds[w.Random.IntN(len(n.kinds))]]
	w.Faults[f.Name]++
	w.Printf("*** %s", f.Name)
	f.Inflict(n)
	w.After(n.interval(), n.strike)
}

// rewind takes a process back to what it is now, after a while: a virtual machine
// that is restored from a snapshot. It can find that out only if its wall clock can
// be trusted; and what it believed in then, it believes in until it has looked at
// its clocks, so that it must have nothing.
func (n *nemesis) rewind(p *process) {
	w := n.world
	if w.kind != Wall && w.kind != Both || !p.runs() || slices.ContainsFunc(p.stakes, func(s stake) bool { return s.held }) {
		return
	}
	p.ring() // a process looks at its clocks all the time: how long it had not is what hides a leap
	snapshot, epoch, monotonic := p.machine.Clone(), p.epoch, p.mono.At(w.Now)
	wishes := slices.Clone(p.stakes)
	w.After(2*w.epsilon+n.duration(), func() {
		if epoch != p.epoch || !p.runs() || w.after.phase != faulty {
			return
		}
		w.Printf("%s is taken back", p.label)
		p.machine = snapshot
		p.mono.Set(w.Now, monotonic)
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
	w := n.world
	for _, r := range w.resources {
		if len(r.members) > 1 || !p.member(r) || !p.runs() || p.machine.Retired() {
			continue
		}
		for range 3 * (lease + 2*w.epsilon) / time.Millisecond {
			if !p.stakes[r.index].held {
				p.ask(r, hold)
			}
			if !p.stakes[r.index].held || w.Failed != nil {
				break // it has to wait
			}
			p.release(r)
		}
	}
}

// crash kills a process, which comes back.
func (n *nemesis) crash(p *process) {
	w := n.world
	if w.after.phase != faulty {
		return
	}
	if !n.amnesia {
		p.stop(n.duration())
		return
	}
	p.die()
	w.After([]time.Duration{0, n.duration()}[w.Random.IntN(2)], p.boot)
}

// orphan lets everyone forget a lease but its holder, which hears of nothing, and
// lets the clocks go as is worst then, as far as the world allows: those of the
// holder are slow, and those of the others fast.
func (n *nemesis) orphan() {
	w := n.world
	r := w.resources[w.Random.IntN(len(w.resources))]
	for _, p := range w.processes {
		if !p.believes(r) {
			continue
		}
		n.isolate(p, 2)
		n.skew(p, slowest, 300_000, -1)
		// A wall clock that is a little fast is not found out by the process
		// itself, and if those of all others are, not by them either.
		fast := engine.TrueRate + engine.Rate(w.Random.Int64N(300_000))
		for _, other := range w.processes {
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
	w := n.world
	to := flease.Wall(w.Now + sign*int64(w.epsilon/2))
	switch w.kind {
	case Wall:
		monotonic, wall = []engine.Rate{300_000, 3_000_000}[(sign+1)/2], engine.TrueRate
	case Mono:
		if sign < 0 {
			to = p.wall.At(w.Now) // it must not end the lease
		}
	default:
		wall = engine.TrueRate
	}
	n.set(p, to)
	p.wall.Run(w.Now, wall)
	p.mono.Run(w.Now, monotonic)
	w.Printf("the clocks of %s go at %.2f, and wrong by %+d", p.label, float64(monotonic)/1e6, sign)
	p.reschedule()
}

func (n *nemesis) cut(from, to *process) {
	cuts := n.world.Net.Cuts(from.index, to.index)
	*cuts++
	n.world.After(n.duration(), func() { *cuts-- })
}

// isolate cuts a process off: what it sends, what it is sent, or both.
func (n *nemesis) isolate(p *process, how int) {
	for _, other := range n.world.processes {
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
	*what = to[n.world.Random.IntN(len(to))]
	n.world.After(n.duration(), func() { *what = 0 })
}

// changeRate changes the rate of a monotonic clock.
func (n *nemesis) changeRate(p *process) {
	w := n.world
	r := []engine.Rate{slowest, fastest, slowest + engine.Rate(w.Random.Int64N(int64(fastest-slowest)))}[w.Random.IntN(3)]
	if w.kind == Wall && w.after.phase == faulty {
		r = []engine.Rate{0, 300_000, 3_000_000, 20_000_000, 300_000 + engine.Rate(w.Random.Int64N(2_700_000)), r}[w.Random.IntN(6)]
	}
	w.Printf("the monotonic clock of %s goes at %.2f", p.label, float64(r)/1e6)
	p.mono.Run(w.Now, r)
	p.reschedule()
}

// setWall sets a wall clock: to about the true time, or by any amount if the world
// allows it.
func (n *nemesis) setWall(p *process) {
	w := n.world
	if w.kind != Mono {
		n.synchronise(p)
		return
	}
	most := []time.Duration{w.epsilon, lease, 3 * lease}[w.Random.IntN(3)]
	n.set(p, p.wall.At(w.Now).Add(w.span(-most, most)))
}

// synchronise sets a wall clock to within half of epsilon of true time.
func (n *nemesis) synchronise(p *process) {
	w := n.world
	half := w.epsilon / 2
	off := []time.Duration{-half, half, w.span(-half, half)}[w.Random.IntN(3)]
	p.wall.Run(w.Now, engine.TrueRate)
	n.set(p, flease.Wall(w.Now).Add(off))
}

func (n *nemesis) set(p *process, to flease.Wall) {
	w := n.world
	w.Printf("the wall clock of %s is set to %.3f", p.label, w.Seconds(int64(to)))
	n.look(p)
	p.wall.Set(w.Now, to)
	n.look(p)
	w.oracle.clockChanged(p)
}

// look remembers by how much a wall clock has been ahead of true time.
func (n *nemesis) look(p *process) { n.ahead = max(n.ahead, int64(p.wall.At(n.world.Now))-n.world.Now) }

// slew lets wall clocks drift, all of them or some in the same way, as if they
// followed one bad server; or sets some of them by the same amount.
func (n *nemesis) slew() {
	w := n.world
	if w.kind != Mono {
		n.setWall(n.any())
		return
	}
	// A clock that is a little fast is not found out by the process itself.
	r := []engine.Rate{300_000, 3_000_000, 300_000 + engine.Rate(w.Random.Int64N(2_700_000)), engine.TrueRate, engine.TrueRate + engine.Rate(w.Random.Int64N(300_000))}[w.Random.IntN(5)]
	by := w.span(-lease, lease)
	together := w.Chance(2)
	for _, p := range w.processes {
		if !w.Chance(2) {
			continue
		}
		if together {
			n.set(p, p.wall.At(w.Now).Add(by))
		}
		n.look(p)
		w.Printf("the wall clock of %s goes at %.2f", p.label, float64(r)/1e6)
		p.wall.Run(w.Now, r)
	}
}

// heal ends all faults: everything that is still under way arrives soon, or is
// lost.
func (n *nemesis) heal() {
	w := n.world
	w.Net.Heal()
	n.starved = 0
	for _, p := range w.processes {
		n.changeRate(p)
		n.synchronise(p)
		if p.paused != 0 {
			p.goOn()
		}
	}
	w.Queue.Revise(func(at int64, e *engine.Event) (int64, bool) {
		if _, arrives := e.What.(*packet); arrives {
			at = min(at, w.Now+int64(w.Below(w.usual)))
		}
		return at, true
	})
}
