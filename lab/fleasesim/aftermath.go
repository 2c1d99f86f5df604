package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

type phase uint8

const (
	faulty   phase = iota // the nemesis strikes
	healed                // it does no more: everything that is wanted must be held
	calming               // what faults have left behind comes to its end, and nobody tries anything
	besieged              // all is well, and everyone asks who has what: nobody may lose anything
	bereaved              // holders have died: others must take over
	leaving               // all is released: all must be forgotten
)

// A role is what a process does with resources when the faults are over.
type role uint8

const (
	wanter  role = iota // wants them
	badger              // tries them, again and again
	watcher             // does nothing with them
)

// An aftermath is what happens when faults have ended, and what must come of it.
type aftermath struct {
	*world
	phase    phase
	began    int64
	deadline int64
}

// heal ends the faults. Who is dead comes back, or stays dead if a majority of
// every group lives on.
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

// part is what must come of twins: one of them gives way, and when all that was
// agreed upon with the help of both is over, leases exclude each other again.
func (a *aftermath) part() {
	for _, p := range a.processes {
		p.gone, p.role = false, wanter
		if p.machine == nil || p.machine.Retired() || len(a.byID[p.id]) > 1 && a.Chance(4) {
			p.die()
			p.boot()
		}
	}
	if !a.busy() {
		a.over = true // nobody may ever hear of it
		return
	}
	a.After(a.recovery()+2*lease, func() {
		a.oracle.checkParted()
		a.After(2*lease, func() { a.oracle.parted = true })
		a.After(5*lease, func() { a.over = true })
	})
}

// busy reports whether others have to do with each process that has a twin.
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

// recovery is how long it takes until everyone takes part. A process that finds
// that its clock is set while it waits begins to wait anew.
func (w *world) recovery() time.Duration {
	d := max(slow(drift.Stretch(lease)), lease+2*w.epsilon)
	if w.kind == Mono {
		d *= 2
	}
	return d
}

// takeover is how long it takes until a resource has another holder, after the
// last one has died: its lease as acceptors count it; and some rounds, because
// those who want it get in each other's way. Where wall clocks were ahead, so are
// the ends of leases.
func (w *world) takeover() time.Duration {
	d := max(slow(drift.Stretch(lease)), lease+2*w.epsilon) + rounds
	if w.kind == Mono {
		d += time.Duration(w.nemesis.ahead)
	}
	return d
}

// rounds are many: packets take 20 ms at most, with a random wait in between.
const rounds = 3 * lease

func slow(d time.Duration) time.Duration {
	return d * time.Duration(engine.TrueRate) / time.Duration(slowest)
}

// poll looks now and then whether what must happen has happened.
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
		a.Violated(L5Progress, "%s has had no holder for %v although it is wanted, most of its group %v live, and nothing is wrong (phase %d)",
			waiting.name, time.Duration(a.Now-a.began), waiting.members, a.phase)
		return
	}
	a.After(lease/20, a.poll)
}

// unheld returns a resource that is wanted and that nobody has, nil if there is
// none.
func (a *aftermath) unheld() *resource {
	for _, r := range a.resources {
		wanted, held := false, false
		for _, p := range a.processes {
			wanted = wanted || p.machine != nil && p.role == wanter && p.member(r)
			held = held || p.machine != nil && p.believes(r)
		}
		if wanted && !held {
			return r
		}
	}
	return nil
}

// calm lets all that faults have left behind come to its end: processes that are
// not ready, clocks that are taken for wrong, members that have forgotten.
func (a *aftermath) calm() {
	a.enter(calming)
	for _, p := range a.processes {
		p.ring() // or who has nothing to do would look at its clocks only later
	}
	a.After(a.recovery()+2*lease, func() {
		a.Printf("=== everyone asks")
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

// siege lets a process try everything that it has not, time and again.
func (a *aftermath) siege(p *process, pace time.Duration) {
	if a.phase != besieged || !p.runs() {
		return
	}
	for _, r := range a.resources {
		if p.member(r) && !p.believes(r) {
			p.ask(r, try)
		}
	}
	a.After(a.span(pace/2, pace), func() { a.siege(p, pace) })
}

// bereave lets holders die for good, as far as a majority of every group lives on.
func (a *aftermath) bereave() {
	a.enter(bereaved)
	a.deadline = a.Now + int64(a.takeover())
	for _, r := range a.resources {
		for _, p := range a.processes {
			if p.machine != nil && p.believes(r) && a.affords(p) {
				p.gone = true
				p.die()
			}
		}
	}
}

// leave lets everyone release everything. What nobody asks for is looked at once
// in a lingering time, and forgotten when it was not touched for one.
func (a *aftermath) leave() {
	a.Printf("=== all is released")
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
		a.oracle.checkForgotten()
		a.over = true
	})
}

func (a *aftermath) act(p *process) {
	for _, r := range a.resources {
		switch {
		case !p.member(r) || a.phase == leaving:
		case p.role == wanter && !p.believes(r):
			p.ask(r, hold)
		case p.role == badger && !p.believes(r) && a.phase != calming:
			p.ask(r, try)
		}
	}
}
