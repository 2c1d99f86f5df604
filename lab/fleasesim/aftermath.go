package fleasesim

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/lab/sim/engine"
)

// A phase is a part of a world's time.
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
	world    *world
	phase    phase
	began    int64
	deadline int64
}

// heal ends the faults. Who is dead comes back, or stays dead if a majority of
// every group lives on.
func (a *aftermath) heal() {
	w := a.world
	w.Printf("=== all faults end")
	a.enter(healed)
	w.nemesis.heal()
	for _, p := range w.processes {
		p.role = []role{wanter, wanter, badger, watcher}[w.Random.IntN(4)]
		switch {
		case p.machine != nil:
		case w.Chance(3) && w.affords(p):
			p.gone = true
		default:
			p.boot()
		}
	}
	if w.kind == Twins {
		a.part()
		return
	}
	a.deadline = w.Now + int64(w.recovery()+w.takeover())
	a.poll()
}

// part is what must come of twins: one of them gives way, and when all that was
// agreed upon with the help of both is over, leases exclude each other again.
func (a *aftermath) part() {
	w := a.world
	for _, p := range w.processes {
		p.gone, p.role = false, wanter
		if p.machine == nil || p.machine.Retired() || len(w.byID[p.id]) > 1 && w.Chance(4) {
			p.die()
			p.boot()
		}
	}
	if !w.busy() {
		w.over = true // nobody may ever hear of it
		return
	}
	w.After(w.recovery()+2*lease, func() {
		w.oracle.checkParted()
		w.After(2*lease, func() { w.oracle.parted = true })
		w.After(5*lease, func() { w.over = true })
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

func (a *aftermath) enter(p phase) { a.phase, a.began = p, a.world.Now }

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

// slow is how long a time is on the slowest clock.
func slow(d time.Duration) time.Duration {
	return d * time.Duration(engine.TrueRate) / time.Duration(slowest)
}

// poll looks now and then whether what must happen has happened.
func (a *aftermath) poll() {
	w := a.world
	waiting := a.unheld()
	w.oracle.checks[L5Progress]++
	switch {
	case waiting == nil && a.phase == healed:
		a.calm()
		return
	case waiting == nil:
		a.leave()
		return
	case w.Now > a.deadline:
		w.Violated(L5Progress, "%s has had no holder for %v although it is wanted, most of its group %v live, and nothing is wrong (phase %d)",
			waiting.name, time.Duration(w.Now-a.began), waiting.members, a.phase)
		return
	}
	w.After(lease/20, a.poll)
}

// unheld returns a resource that is wanted and that nobody has, nil if there is
// none.
func (a *aftermath) unheld() *resource {
	for _, r := range a.world.resources {
		wanted, held := false, false
		for _, p := range a.world.processes {
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
	w := a.world
	a.enter(calming)
	for _, p := range w.processes {
		p.ring() // or who has nothing to do would look at its clocks only later
	}
	w.After(w.recovery()+2*lease, func() {
		w.Printf("=== everyone asks")
		a.enter(besieged)
		w.oracle.checkKnown()
		pace := milliseconds(w.Random, 10, 30, 100)
		for _, p := range w.processes {
			w.After(w.Below(pace), func() { a.siege(p, pace) })
		}
		w.After(2*lease, func() {
			w.oracle.checkUnanswered()
			a.bereave()
			a.poll()
		})
	})
}

// siege lets a process try everything that it has not, time and again.
func (a *aftermath) siege(p *process, pace time.Duration) {
	w := a.world
	if a.phase != besieged || !p.runs() {
		return
	}
	for _, r := range w.resources {
		if p.member(r) && !p.believes(r) {
			p.ask(r, try)
		}
	}
	w.After(w.span(pace/2, pace), func() { a.siege(p, pace) })
}

// bereave lets holders die for good, as far as a majority of every group lives on.
func (a *aftermath) bereave() {
	w := a.world
	a.enter(bereaved)
	a.deadline = w.Now + int64(w.takeover())
	for _, r := range w.resources {
		for _, p := range w.processes {
			if p.machine != nil && p.believes(r) && w.affords(p) {
				p.gone = true
				p.die()
			}
		}
	}
}

// leave lets everyone release everything. What nobody asks for is looked at once
// in a lingering time, and forgotten when it was not touched for one.
func (a *aftermath) leave() {
	w := a.world
	w.Printf("=== all is released")
	a.enter(leaving)
	for _, p := range w.processes {
		if p.runs() {
			for _, r := range w.resources {
				if p.member(r) {
					p.watch(r, false)
					p.release(r)
				}
			}
		}
	}
	linger := slow(drift.Stretch(lease) + w.epsilon)
	ahead := time.Duration(0)
	if w.kind == Mono {
		ahead = time.Duration(w.nemesis.ahead)
	}
	w.After(w.takeover()+3*linger+ahead, func() {
		w.oracle.checkForgotten()
		w.over = true
	})
}

// act is what an application does when the faults are over.
func (a *aftermath) act(p *process) {
	w := a.world
	for _, r := range w.resources {
		switch {
		case !p.member(r) || a.phase == leaving:
		case p.role == wanter && !p.believes(r):
			p.ask(r, hold)
		case p.role == badger && !p.believes(r) && a.phase != calming:
			p.ask(r, try)
		}
	}
}
