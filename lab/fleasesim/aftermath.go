package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

type phase uint8

const (
	faulty   phase = iota // the nemesis injects faults
	healed                // no more faults: every wanted resource must get a holder
	calming               // the effects of faults end, and there are no new tries
	besieged              // without faults, all processes try all resources: no holder may lose its lease
	bereaved              // holders have crashed: other processes must take over
	leaving               // all leases are released: all state must be removed
)

// A role is the behaviour of a process after the faults.
type role uint8

const (
	wanter  role = iota // acquires resources
	badger              // tries resources, again and again
	watcher             // does neither
)

// An aftermath is the part of a world after the faults, with its requirements.
type aftermath struct {
	*world
	phase    phase
	began    int64
	deadline int64
}

// heal ends the faults. A crashed process restarts, or stays down if a majority of every group remains.
func (a *aftermath) heal() {
	a.Printf("=== all faults end")
	a.enter(healed)
	a.nemesis.heal()
	for _, p := range a.processes {
		p.role = []role{wanter, wanter, badger, watcher}[a.Random.IntN(4)]
		switch {
		case p.machine != nil:
		case a.Chance(3) && a.affords(p):
			p.gone = true
		default:
			p.boot()
		}
	}
	if a.kind == Twins {
		a.part()
		return
	}
	a.deadline = a.Now + int64(a.recovery()+a.takeover())
	a.poll()
}

// part is the aftermath of twins: one of them gives way, and when all leases that were granted with the help
// of both have expired, leases exclude each other again.
func (a *aftermath) part() {
	for _, p := range a.processes {
		p.gone, p.role = false, wanter
		if p.machine == nil || p.machine.Retired() || len(a.byID[p.id]) > 1 && a.Chance(4) {
			p.die()
			p.boot()
		}
	}
	if !a.busy() {
		a.over = true // the other processes may never detect it
		return
	}
	a.After(a.recovery()+2*lease, func() {
		a.oracle.checkParted()
		a.After(2*lease, func() { a.oracle.parted = true })
		a.After(5*lease, func() { a.over = true })
	})
}

// busy reports whether each process with a twin is in a group with others.
func (w *world) busy() bool {
	for id, twins := range w.byID {
		if len(twins) > 1 {
			return slices.ContainsFunc(w.resources, func(r *resource) bool { return len(r.members) > 1 && slices.Contains(r.members, id) })
		}
	}
	return false
}

func (a *aftermath) enter(p phase) { a.phase, a.began = p, a.Now }

// affords reports whether all groups keep a majority without a process.
func (w *world) affords(p *process) bool {
	for _, r := range w.resources {
		alive := 0
		for _, id := range r.members {
			if q := w.byID[id][0]; q != p && !q.gone {
				alive++
			}
		}
		if 2*alive <= len(r.members) {
			return false
		}
	}
	return true
}

// recovery returns the time until all processes take part. A process that detects that its clock was set
// while it waits starts to wait again.
func (w *world) recovery() time.Duration {
	d := max(slow(drift.Stretch(lease)), lease+2*w.epsilon)
	if w.kind == Mono {
		d *= 2
	}
	return d
}

// takeover returns the time until a resource has another holder after the crash of the last one: the lease as
// counted by acceptors, and some rounds, because proposers conflict. If wall clocks were ahead, the ends of
// leases are ahead too.
func (w *world) takeover() time.Duration {
	d := max(slow(drift.Stretch(lease)), lease+2*w.epsilon) + rounds
	if w.kind == Mono {
		d += time.Duration(w.nemesis.ahead)
	}
	return d
}

// rounds is the time for many rounds: a packet takes at most 20 ms, with a random backoff in between.
const rounds = 3 * lease

func slow(d time.Duration) time.Duration {
	return d * time.Duration(engine.TrueRate) / time.Duration(slowest)
}

// poll checks repeatedly whether the requirements of the phase are met.
func (a *aftermath) poll() {
	waiting := a.unheld()
	a.Checks[L5Progress]++
	switch {
	case waiting == nil && a.phase == healed:
		a.calm()
		return
	case waiting == nil:
		a.leave()
		return
	case a.Now > a.deadline:
		a.Violated(L5Progress, "%s has had no holder for %v although it is wanted, a majority of its group %v runs, and there are no faults (phase %d)",
			waiting.name, time.Duration(a.Now-a.began), waiting.members, a.phase)
		return
	}
	a.After(lease/20, a.poll)
}

// unheld returns a resource that is wanted and has no holder, nil if there is none.
func (a *aftermath) unheld() *resource {
	for _, r := range a.resources {
		wanted, held := false, false
		for _, p := range a.processes {
			wanted = wanted || p.machine != nil && p.role == wanter && p.member(r)
			held = held || p.machine != nil && p.holds(r)
		}
		if wanted && !held {
			return r
		}
	}
	return nil
}

// calm waits until the effects of faults have ended: processes that are not ready, distrusted clocks, members
// without state.
func (a *aftermath) calm() {
	a.enter(calming)
	for _, p := range a.processes {
		p.fire() // otherwise an idle process would read its clocks only later
	}
	a.After(a.recovery()+2*lease, func() {
		a.Printf("=== all processes try all resources")
		a.enter(besieged)
		a.oracle.checkKnown()
		pace := engine.Pick[time.Duration](a.Random, 10, 30, 100) * time.Millisecond
		for _, p := range a.processes {
			a.After(a.Below(pace), func() { a.siege(p, pace) })
		}
		a.After(2*lease, func() {
			a.oracle.checkUnanswered()
			a.bereave()
			a.poll()
		})
	})
}

// siege makes a process try all resources that it does not hold, repeatedly.
func (a *aftermath) siege(p *process, pace time.Duration) {
	if a.phase != besieged || !p.runs() {
		return
	}
	for _, r := range a.resources {
		if p.member(r) && !p.holds(r) {
			p.request(r, try)
		}
	}
	a.After(a.span(pace/2, pace), func() { a.siege(p, pace) })
}

// bereave crashes holders for good, as long as a majority of every group remains.
func (a *aftermath) bereave() {
	a.enter(bereaved)
	a.deadline = a.Now + int64(a.takeover())
	for _, r := range a.resources {
		for _, p := range a.processes {
			if p.machine != nil && p.holds(r) && a.affords(p) {
				p.gone = true
				p.die()
			}
		}
	}
}

// leave makes all processes release all resources. State without requests is checked once per linger time,
// and removed if it was not used for one.
func (a *aftermath) leave() {
	a.Printf("=== all resources are released")
	a.enter(leaving)
	for _, p := range a.processes {
		if p.runs() {
			for _, r := range a.resources {
				if p.member(r) {
					p.watch(r, false)
					p.release(r)
				}
			}
		}
	}
	linger := slow(drift.Stretch(lease) + a.epsilon)
	ahead := time.Duration(0)
	if a.kind == Mono {
		ahead = time.Duration(a.nemesis.ahead)
	}
	a.After(a.takeover()+3*linger+ahead, func() {
		a.oracle.checkRemoved()
		a.over = true
	})
}

func (a *aftermath) act(p *process) {
	for _, r := range a.resources {
		switch {
		case !p.member(r) || a.phase == leaving:
		case p.role == wanter && !p.holds(r):
			p.request(r, hold)
		case p.role == badger && !p.holds(r) && a.phase != calming:
			p.request(r, try)
		}
	}
}
