package fleasesim

import (
	"math"
	"slices"
	"time"
)

// A nemesis makes trouble.
type nemesis struct {
	world   *world
	total   int  // of the weights of its faults
	amnesia bool // processes die; if not, they are stopped instead
	starved int  // how many faults make alarms late
	ahead   int64
}

func (n *nemesis) init(w *world) {
	n.world = w
	for _, weight := range w.cfg.Faults {
		n.total += weight
	}
	// Fences rise without memory only if wall clocks can be trusted. Where they
	// cannot, the other half of the claim is tested in worlds in which nobody
	// forgets.
	n.amnesia = w.kind != Mono || w.chance(2)
}

// begin lets all clocks differ.
func (n *nemesis) begin() {
	for _, p := range n.world.processes {
		n.changeRate(p)
		n.synchronise(p)
	}
	n.world.later(n.interval(), n.strike)
}

// interval is the time between two faults.
func (n *nemesis) interval() time.Duration { return n.world.span(lease/20, lease*3/4) }

// duration is how long a fault lasts.
func (n *nemesis) duration() time.Duration {
	return n.world.span(lease/10, []time.Duration{lease / 2, lease, 4 * lease}[n.world.random.IntN(3)])
}

// lateness is by how much an alarm is late.
func (n *nemesis) lateness() time.Duration {
	if n.starved > 0 {
		return time.Microsecond + n.world.below(lease/2)
	}
	return time.Microsecond + n.world.below(time.Millisecond)
}

func (n *nemesis) any() *process {
	return n.world.processes[n.world.random.IntN(len(n.world.processes))]
}

// strike makes a fault happen, and the next one later.
func (n *nemesis) strike() {
	w := n.world
	if w.after.phase != faulty || n.total == 0 {
		return
	}
	dice := w.random.IntN(n.total)
	for f := range faults {
		if dice -= w.cfg.Faults[f]; dice < 0 {
			w.stats.faults[f]++
			w.trace.printf(w.now, "*** %v", f)
			n.inflict(f)
			break
		}
	}
	w.later(n.interval(), n.strike)
}

func (n *nemesis) inflict(f Fault) {
	w := n.world
	switch f {
	case Crash:
		n.crash(n.any())
	case CrashAll:
		for _, p := range w.processes {
			w.later(w.below(lease/4), func() { n.crash(p) })
		}
	case Orphan:
		n.orphan(w.resources[w.random.IntN(len(w.resources))])
	case Pause:
		n.any().stop(n.duration())
	case LinkCut:
		a, b := n.any(), n.any()
		n.cut(a, b)
		n.cut(b, a)
	case OneWay:
		n.cut(n.any(), n.any())
	case Isolate:
		n.isolate(n.any(), w.random.IntN(3))
	case Loss:
		n.worsen(&w.net.loss, []int{10, 30, 60}[w.random.IntN(3)])
	case Duplicate:
		n.worsen(&w.net.duplicate, []int{20, 60}[w.random.IntN(2)])
	case Delay:
		w.net.longest = []time.Duration{lease / 10, lease / 2, 3 * lease}[w.random.IntN(3)]
		n.worsen(&w.net.delay, []int{10, 50, 100}[w.random.IntN(3)])
	case Rate:
		n.changeRate(n.any())
	case Step:
		n.setWall(n.any())
	case Slew:
		n.slew()
	case Starve:
		n.worsen(&n.starved, 1)
	case Rewind:
		n.rewind(n.any())
	case Sprint:
		n.sprint(n.any())
	case faults:
	}
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
	snapshot, epoch, monotonic := p.machine.Clone(), p.epoch, p.mono.at(w.now)
	wishes := slices.Clone(p.stakes)
	w.later(2*w.epsilon+n.duration(), func() {
		if epoch != p.epoch || !p.runs() || w.after.phase != faulty {
			return
		}
		w.trace.printf(w.now, "%s is taken back", p.label)
		p.machine = snapshot
		p.mono.set(w.now, monotonic)
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
			if !p.stakes[r.index].held || w.failed != nil {
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
	w.later([]time.Duration{0, n.duration()}[w.random.IntN(2)], p.boot)
}

// orphan lets everyone forget a lease but its holder, which hears of nothing, and
// lets the clocks go as is worst then, as far as the world allows: those of the
// holder are slow, and those of the others fast.
func (n *nemesis) orphan(r *resource) {
	w := n.world
	for _, p := range w.processes {
		if !p.believes(r) {
			continue
		}
		n.isolate(p, 2)
		n.skew(p, slowest, 300_000, -1)
		// A wall clock that is a little fast is not found out by the process
		// itself, and if those of all others are, not by them either.
		fast := trueRate + rate(w.random.Int64N(300_000))
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
func (n *nemesis) skew(p *process, monotonic, wall rate, sign int64) {
	w := n.world
	to := w.now + sign*int64(w.epsilon/2)
	switch w.kind {
	case Wall:
		monotonic, wall = []rate{300_000, 3_000_000}[(sign+1)/2], trueRate
	case Mono:
		if sign < 0 {
			to = p.wall.at(w.now) // it must not end the lease
		}
	default:
		wall = trueRate
	}
	n.set(p, to)
	p.wall.run(w.now, wall)
	p.mono.run(w.now, monotonic)
	w.trace.printf(w.now, "the clocks of %s go at %.2f, and wrong by %+d", p.label, float64(monotonic)/1e6, sign)
	p.reschedule()
}

func (n *nemesis) cut(from, to *process) {
	n.world.net.cut(from, to, 1)
	n.world.later(n.duration(), func() { n.world.net.cut(from, to, -1) })
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

// worsen sets something for a while. Of two at a time, the first one's end ends
// both.
func (n *nemesis) worsen(what *int, to int) {
	*what = to
	n.world.later(n.duration(), func() { *what = 0 })
}

// changeRate changes the rate of a monotonic clock.
func (n *nemesis) changeRate(p *process) {
	w := n.world
	r := []rate{slowest, fastest, slowest + rate(w.random.Int64N(int64(fastest-slowest)))}[w.random.IntN(3)]
	if w.kind == Wall && w.after.phase == faulty {
		r = []rate{0, 300_000, 3_000_000, 20_000_000, 300_000 + rate(w.random.Int64N(2_700_000)), r}[w.random.IntN(6)]
	}
	w.trace.printf(w.now, "the monotonic clock of %s goes at %.2f", p.label, float64(r)/1e6)
	p.mono.run(w.now, r)
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
	most := []time.Duration{w.epsilon, lease, 3 * lease}[w.random.IntN(3)]
	n.set(p, p.wall.at(w.now)+int64(w.span(-most, most)))
}

// synchronise sets a wall clock to within half of epsilon of true time.
func (n *nemesis) synchronise(p *process) {
	w := n.world
	half := w.epsilon / 2
	off := []time.Duration{-half, half, w.span(-half, half)}[w.random.IntN(3)]
	p.wall.run(w.now, trueRate)
	n.set(p, w.now+int64(off))
}

func (n *nemesis) set(p *process, to int64) {
	w := n.world
	w.trace.printf(w.now, "the wall clock of %s is set to %.3f", p.label, seconds(to))
	n.look(p)
	p.wall.set(w.now, to)
	n.look(p)
	w.oracle.clockChanged(p)
}

// look remembers by how much a wall clock has been ahead of true time.
func (n *nemesis) look(p *process) { n.ahead = max(n.ahead, p.wall.at(n.world.now)-n.world.now) }

// slew lets wall clocks drift, all of them or some in the same way, as if they
// followed one bad server; or sets some of them by the same amount.
func (n *nemesis) slew() {
	w := n.world
	if w.kind != Mono {
		n.setWall(n.any())
		return
	}
	// A clock that is a little fast is not found out by the process itself.
	r := []rate{300_000, 3_000_000, 300_000 + rate(w.random.Int64N(2_700_000)), trueRate, trueRate + rate(w.random.Int64N(300_000))}[w.random.IntN(5)]
	by := int64(w.span(-lease, lease))
	together := w.chance(2)
	for _, p := range w.processes {
		if !w.chance(2) {
			continue
		}
		if together {
			n.set(p, p.wall.at(w.now)+by)
		}
		n.look(p)
		w.trace.printf(w.now, "the wall clock of %s goes at %.2f", p.label, float64(r)/1e6)
		p.wall.run(w.now, r)
	}
}

// heal ends all faults: everything that is still under way arrives soon, or is
// lost.
func (n *nemesis) heal() {
	w := n.world
	clear(w.net.cuts)
	w.net.loss, w.net.duplicate, w.net.delay, n.starved = 0, 0, 0, 0
	for _, p := range w.processes {
		n.changeRate(p)
		n.synchronise(p)
		if p.paused != 0 {
			p.goOn()
		}
	}
	w.queue.Revise(func(at int64, e *event) (int64, bool) {
		if e.what == arrival {
			at = min(at, w.now+int64(w.below(w.net.usual)))
		}
		return at, true
	})
}
