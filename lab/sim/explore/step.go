package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// next returns a copy, to be changed; nil if it would be a detour too many. What is
// no detour: the letter that has waited longest arrives; when there is none, a process
// that stood still goes on, or time passes until something is due.
func (st *state) next(detour bool) *state {
	n := *st
	n.resumed, n.refused = false, false
	if detour && st.scenario.Detours != explorer.Unlimited {
		if n.detours == 0 {
			return nil
		}
		n.detours--
	}
	return &n
}

// A visitor is shown a state that can follow, and what leads to it. It is shown them in
// the same order each time.
type visitor func(next *state, what func() string)

func (st *state) Each(visit func(next *state, what func() string)) {
	if st.scenario.Detours == explorer.Unlimited {
		st.eachArrival(visit)
		st.quiet(visit)
	} else {
		st.eachDetour(visit)
	}
	st.eachCrash(visit)
	st.eachPause(visit)
}

// eachArrival lets any letter arrive, or go wrong. One is late if others come first.
func (st *state) eachArrival(visit visitor) {
	for i, l := range st.mail {
		if !st.procs[l.to].still {
			st.arrival(i, false, visit)
			st.mishaps(i, visit)
		}
	}
}

func (st *state) eachDetour(visit visitor) {
	first := slices.IndexFunc(st.mail, func(l *letter) bool { return !l.late && !st.procs[l.to].still })
	if first >= 0 {
		st.arrival(first, false, visit)
	} else {
		st.quiet(visit)
	}
	for i, l := range st.mail {
		if i != first && !st.procs[l.to].still {
			st.arrival(i, true, visit)
		}
	}
	if first < 0 {
		return
	}
	if n := st.next(true); n != nil {
		n.hold(first, false)
		visit(n, func() string { return "is held back: " + st.mail[first].String() })
	}
	st.mishaps(first, visit)
	if n := st.next(true); n != nil && n.pass() {
		visit(n, func() string { return fmt.Sprintf("%v pass, while messages are under way", n.now-st.now) })
	}
}

func (st *state) arrival(i int, detour bool, visit visitor) {
	if n := st.next(detour); n != nil {
		n.mail = without(n.mail, i)
		n.deliver(st.mail[i])
		visit(n, func() string { return "arrives: " + st.mail[i].String() })
	}
}

func without(mail []*letter, i int) []*letter { return slices.Concat(mail[:i], mail[i+1:]) }

// deliver is what comes of a letter that arrives. What is asked of the store is answered
// in the same step.
func (st *state) deliver(l *letter) {
	p := st.procs[l.to]
	r, asks := l.what.(*request)
	if asks {
		answer := st.serve(r)
		if !l.mute && l.epoch == p.epoch {
			st.call(l.to, answer)
		}
		return
	}
	if l.epoch == 0 || l.epoch == p.epoch {
		st.call(l.to, l.what)
	}
}

// quiet is what happens when there is nothing to arrive.
func (st *state) quiet(visit visitor) {
	if n := st.next(false); n.pass() {
		visit(n, func() string { return fmt.Sprintf("%v pass", n.now-st.now) })
	}
	for i, p := range st.procs {
		if !p.still {
			continue
		}
		n := st.next(false)
		moving := *p
		moving.still = false
		n.procs[i] = &moving
		n.call(i, nil)
		visit(n, func() string { return processName(i) + " goes on" })
	}
}

// pass lets time go by until a process is due, and wakes all that are. It reports
// whether there is such a time.
func (st *state) pass() bool {
	due := time.Duration(mono.Never)
	for i, p := range st.procs {
		if !p.still {
			due = min(due, st.when(i, p.wake))
		}
	}
	if due == time.Duration(mono.Never) {
		return false
	}
	st.now = max(st.now, due)
	for i, p := range st.procs {
		if !p.still && st.clock(i) >= p.wake {
			st.call(i, nil)
		}
	}
	return true
}

func (st *state) mishaps(i int, visit visitor) {
	l := st.mail[i]
	if r, asks := l.what.(*request); asks {
		if n := st.next(true); n != nil {
			n.hold(i, true)
			n.call(l.to, r.unanswered())
			visit(n, func() string { return "is not answered in time, and may yet happen: " + l.String() })
		}
		if n := st.next(true); n != nil {
			n.mail = without(n.mail, i)
			n.serve(r)
			n.call(l.to, r.unanswered())
			visit(n, func() string { return "happens, and the answer is lost: " + l.String() })
		}
		return
	}
	if n := st.next(true); n != nil && n.duplicates > 0 {
		n.duplicates--
		n.hold(i, false)
		n.deliver(l)
		visit(n, func() string { return "arrives, not for the last time: " + l.String() })
	}
}

func (st *state) hold(i int, mute bool) {
	late := *st.mail[i]
	late.late, late.mute = true, mute
	st.kit.digestLetter(&late)
	st.mail = slices.Clone(st.mail)
	st.mail[i] = &late
}

// eachCrash lets a process die, and starts it again. One that stood still before was
// dead for as long.
func (st *state) eachCrash(visit visitor) {
	for i, p := range st.procs {
		n := st.next(true)
		if n == nil || n.crashes == 0 {
			return
		}
		n.crashes--
		n.mail = slices.DeleteFunc(slices.Clone(n.mail), func(l *letter) bool { return l.to == i && l.epoch != 0 && !l.toStore() })
		n.boot(i, p.epoch+1)
		visit(n, func() string { return processName(i) + " dies, and starts" })
	}
}

// eachPause lets a process stand still until nothing else can happen, or longer.
func (st *state) eachPause(visit visitor) {
	for i, p := range st.procs {
		n := st.next(true)
		if n == nil || n.pauses == 0 {
			return
		}
		if p.still {
			continue
		}
		n.pauses--
		stopped := *p
		stopped.still = true
		n.kit.digestProcess(&stopped)
		n.procs[i] = &stopped
		visit(n, func() string { return processName(i) + " stands still" })
	}
}
