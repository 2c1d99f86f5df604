package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// next returns a copy for a step; nil if a detour exceeds the limit. These steps are not detours: the oldest
// message is delivered; if there is none, a stopped process continues, or the time advances to the next wake.
func (st *state) next(detour bool) *state {
	n := *st
	n.resumed, n.refused, n.lost, n.died = false, false, false, false
	if detour && st.scenario.Detours != explorer.Unlimited {
		if n.detours == 0 {
			return nil
		}
		n.detours--
	}
	return &n
}

// A visitor is called with each successor and the description of its step, in a deterministic order.
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

// eachArrival delivers each message, or injects a fault into it. It is reordered if others are delivered before.
func (st *state) eachArrival(visit visitor) {
	for i, l := range st.messages {
		if !st.procs[l.to].paused {
			st.arrival(i, false, visit)
			st.eachFault(i, visit)
		}
	}
}

func (st *state) eachDetour(visit visitor) {
	first := slices.IndexFunc(st.messages, func(l *message) bool { return !l.reordered && !st.procs[l.to].paused })
	if first >= 0 {
		st.arrival(first, false, visit)
	} else {
		st.quiet(visit)
	}
	for i, l := range st.messages {
		if i != first && !st.procs[l.to].paused {
			st.arrival(i, true, visit)
		}
	}
	if first < 0 {
		return
	}
	if n := st.next(true); n != nil {
		n.hold(first, false)
		visit(n, func() string { return "reordered: " + st.messages[first].String() })
	}
	st.eachFault(first, visit)
	if n := st.next(true); n != nil && n.pass() {
		visit(n, func() string { return fmt.Sprintf("%v pass, while messages are in flight", n.now-st.now) })
	}
}

func (st *state) arrival(i int, detour bool, visit visitor) {
	if n := st.next(detour); n != nil {
		n.messages = without(n.messages, i)
		n.deliver(st.messages[i])
		visit(n, func() string { return "delivered: " + st.messages[i].String() })
	}
}

func without(messages []*message, i int) []*message {
	return slices.Concat(messages[:i], messages[i+1:])
}

// deliver executes the delivery of a message. The store executes a request and replies in the same step.
func (st *state) deliver(l *message) {
	p := st.procs[l.to]
	r, isRequest := l.what.(*request)
	if isRequest {
		answer := st.serve(r)
		if !l.timedOut && l.epoch == p.epoch {
			st.call(l.to, answer)
		}
		return
	}
	if l.epoch == 0 || l.epoch == p.epoch {
		st.call(l.to, l.what)
	}
}

// quiet executes the steps without a message.
func (st *state) quiet(visit visitor) {
	if n := st.next(false); n.pass() {
		visit(n, func() string { return fmt.Sprintf("%v pass", n.now-st.now) })
	}
	for i, p := range st.running() {
		if !p.paused {
			continue
		}
		n := st.next(false)
		moving := *p
		moving.paused = false
		n.procs[i] = &moving
		n.call(i, nil)
		visit(n, func() string { return processName(i) + " continues" })
	}
}

// pass advances the time to the next wake of a process, and wakes all processes that are due. It reports
// whether there is such a time.
func (st *state) pass() bool {
	due := time.Duration(mono.Never)
	for i, p := range st.running() {
		if !p.paused {
			due = min(due, st.when(i, p.wake))
		}
	}
	if due == time.Duration(mono.Never) {
		return false
	}
	st.now = max(st.now, due)
	for i, p := range st.running() {
		if !p.paused && st.clock(i) >= p.wake {
			st.call(i, nil)
		}
	}
	return true
}

func (st *state) eachFault(i int, visit visitor) {
	l := st.messages[i]
	if r, isRequest := l.what.(*request); isRequest {
		if n := st.next(true); n != nil {
			n.hold(i, true)
			n.call(l.to, r.unanswered())
			visit(n, func() string { return "timed out, and may be executed later: " + l.String() })
		}
		if n := st.next(true); n != nil {
			n.messages = without(n.messages, i)
			n.serve(r)
			n.call(l.to, r.unanswered())
			visit(n, func() string { return "executed, and the reply is lost: " + l.String() })
		}
		return
	}
	if n := st.next(true); n != nil && n.duplicates > 0 {
		n.duplicates--
		n.hold(i, false)
		n.deliver(l)
		visit(n, func() string { return "delivered, with a duplicate in flight: " + l.String() })
	}
}

func (st *state) hold(i int, timedOut bool) {
	reordered := *st.messages[i]
	reordered.reordered, reordered.timedOut = true, timedOut
	st.kit.digestMessage(&reordered)
	st.messages = slices.Clone(st.messages)
	st.messages[i] = &reordered
}

// eachCrash restarts each process. If the process was stopped, the crash was at the time of the stop.
func (st *state) eachCrash(visit visitor) {
	for i, p := range st.running() {
		n := st.next(true)
		if n == nil || n.crashes == 0 {
			return
		}
		n.crashes--
		n.messages = slices.DeleteFunc(slices.Clone(n.messages), func(l *message) bool { return l.to == i && l.epoch != 0 && !l.toStore() })
		n.boot(i, p.epoch+1)
		n.report(i, p.epoch)
		visit(n, func() string { return processName(i) + " crashes and restarts" })
	}
}

// eachPause stops each process, until no other step is possible, or longer.
func (st *state) eachPause(visit visitor) {
	for i, p := range st.running() {
		n := st.next(true)
		if n == nil || n.pauses == 0 {
			return
		}
		if p.paused {
			continue
		}
		n.pauses--
		stopped := *p
		stopped.paused = true
		n.kit.digestProcess(&stopped)
		n.procs[i] = &stopped
		visit(n, func() string { return processName(i) + " is stopped" })
	}
}
