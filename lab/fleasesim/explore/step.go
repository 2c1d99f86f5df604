package explore

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/core/machine/flease"
	"github.com/leasehold-dev/leasehold/lab/fleasesim"
	"github.com/leasehold-dev/leasehold/lab/sim/explorer"
)

// A visitor is called with each successor and the description of its step.
type visitor func(next *state, what func() string)

func (st *state) Each(visit func(next *state, what func() string)) {
	first := slices.IndexFunc(st.packets, func(l *packet) bool { return !l.reordered })
	st.eachArrival(first, visit)
	st.eachWish(first, visit)
	st.eachCrash(visit)
	st.eachPass(first, visit)
}

// next returns a copy for a step; nil if a detour exceeds the limit. The delivery of the oldest packet is not
// a detour, nor are other steps if there is no packet.
func (st *state) next(detour bool) *state {
	n := *st
	n.acquired = false
	if detour && st.scenario.Detours != explorer.Unlimited {
		n.detours--
	}
	if n.detours < 0 && st.scenario.Detours != explorer.Unlimited {
		return nil
	}
	return &n
}

func (st *state) eachArrival(first int, visit visitor) {
	for i, l := range st.packets {
		if n := st.next(i != first); n != nil {
			n.deliver(i, false)
			visit(n, func() string { return "delivered: " + l.String() })
		}
		if n := st.next(true); n != nil && n.duplicates > 0 {
			n.duplicates--
			n.deliver(i, true)
			visit(n, func() string { return "delivered, with a duplicate in flight: " + l.String() })
		}
	}
	st.eachDelay(first, visit)
}

// eachDelay delays the oldest packet, perhaps for ever.
func (st *state) eachDelay(first int, visit visitor) {
	if first < 0 || st.scenario.Detours == explorer.Unlimited {
		return // other steps before its delivery delay it
	}
	n := st.next(true)
	if n == nil {
		return
	}
	n.hold(first)
	visit(n, func() string { return "delayed: " + st.packets[first].String() })
}

func (st *state) hold(i int) {
	reordered := *st.packets[i]
	reordered.reordered = true
	st.packets = slices.Clone(st.packets)
	st.packets[i] = &reordered
}

func (st *state) deliver(i int, keep bool) {
	l := st.packets[i]
	if keep {
		st.hold(i)
	} else {
		st.packets = slices.Delete(slices.Clone(st.packets), i, i+1)
	}
	st.call(l.to, func(m *flease.Machine, now flease.Time) { m.Receive(now, &l.envelope, l.messages) })
}

func (st *state) eachWish(first int, visit visitor) {
	for i := range proposers {
		p := st.procs[i]
		for _, w := range []struct {
			may   bool
			name  string
			spend func(*state)
			call  func(*flease.Machine, flease.Time)
		}{
			{!p.asked, "acquires it", func(*state) {}, func(m *flease.Machine, now flease.Time) { _ = m.Acquire(now, resource) }},
			{!p.asked && st.tries > 0, "tries it", func(n *state) { n.tries-- }, func(m *flease.Machine, now flease.Time) { _ = m.Try(now, resource) }},
			{p.held && st.releases > 0, "releases it", func(n *state) { n.releases--; n.procs[i].held = false }, func(m *flease.Machine, now flease.Time) { m.Release(now, resource) }},
		} {
			if !w.may {
				continue
			}
			n := st.next(first >= 0)
			if n == nil {
				return
			}
			asking := *p
			asking.asked = true
			n.procs[i] = &asking
			w.spend(n)
			n.call(i, w.call)
			visit(n, func() string { return fmt.Sprintf("process %d %s", i+1, w.name) })
		}
	}
}

func (st *state) eachCrash(visit visitor) {
	for i, p := range st.procs {
		n := st.next(true)
		if n == nil || n.crashes == 0 {
			return
		}
		n.crashes--
		if err := n.start(i, p.incarnation+1); err != nil {
			panic(err) // it succeeded before
		}
		visit(n, func() string { return fmt.Sprintf("process %d crashes and restarts", i+1) })
	}
}

func (st *state) eachPass(first int, visit visitor) {
	for _, d := range st.scenario.Passes {
		n := st.next(first >= 0)
		if n == nil || n.ticks == 0 {
			return
		}
		n.ticks--
		n.now += d
		for i := range n.procs {
			n.call(i, func(m *flease.Machine, now flease.Time) { m.Advance(now) })
		}
		visit(n, func() string { return fmt.Sprintf("%v pass", d) })
	}
}

func (l *packet) String() string {
	text := fmt.Sprintf("%d to %d:", l.envelope.From, l.to+1)
	for i := range l.messages {
		m := &l.messages[i]
		text += fmt.Sprintf(" %s %d.%d.%d", fleasesim.KindName(m.Kind), m.Ballot.Interval, m.Ballot.Round, m.Ballot.Process)
	}
	if len(l.messages) == 0 {
		text += " greeting"
	}
	return text
}
