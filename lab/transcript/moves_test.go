package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// appName is where an owner's upcalls go. They are under way for as long as the
// application takes.
const appName = "app"

// A value is the state of one key, and the generation that it was written under.
type value struct {
	text       string
	generation leasehold.Generation
}

type values map[leasehold.Key]value

// An incoming is state that an owner lets in.
type incoming struct {
	protocol.Arrival
	state values
}

type (
	// rest is the last of a range's state on its way to another owner, and with
	// it all of it.
	rest struct {
		protocol.Ticket
		r     leasehold.Range
		state values
	}
	// verdict is what the target makes of it.
	verdict struct {
		protocol.Ticket
		confirmed bool
	}
	// An upcall is the application copying state, or putting what has come in
	// its place.
	upcall struct {
		protocol.Ticket
		of    *machine.Machine
		r     leasehold.Range
		lease leasehold.Lease // of what is put in its place
		state values
	}
)

// ticket names a move by the order in which moves appear: t1, t2.
func (w *world) ticket(t protocol.Ticket) string {
	i := slices.Index(w.tickets, t)
	if i < 0 {
		i = len(w.tickets)
		w.tickets = append(w.tickets, t)
	}
	return fmt.Sprintf("t%d", i+1)
}

// carry does what an owner wants done about moves.
func (o *owner) carry(a machine.Action) {
	switch a := a.(type) {
	case machine.StartMove:
		o.outgoing[a.Ticket] = a.Departure
		o.call(upcall{Ticket: a.Ticket, r: a.Range})
	case machine.Stop:
		d := o.outgoing[a.Ticket]
		o.send(&message{from: o.name, to: o.sessions[d.To.Session].place, what: rest{a.Ticket, d.Range, o.stateOf(d.Range)}})
	case machine.EndMove:
		if _, known := o.outgoing[a.Ticket]; known {
			delete(o.outgoing, a.Ticket)
			o.then("%s has done with %s", o.name, o.ticket(a.Ticket))
		}
		o.hush(a.Ticket)
	case machine.Expect:
		o.incoming[a.Ticket] = &incoming{Arrival: a.Arrival}
		o.then("%s lets the state of %s in (%s)", o.name, o.span(a.Range), o.ticket(a.Ticket))
	case machine.Confirm:
		o.answer(o.incoming[a.Ticket], true)
	case machine.Discard:
		o.discard(a.Ticket)
	case machine.Install:
		in := o.incoming[a.Ticket]
		delete(o.incoming, a.Ticket)
		o.call(upcall{Ticket: a.Ticket, r: a.Lease.Range, lease: a.Lease, state: in.state})
	case machine.Parted:
		o.then("%s has nothing left that could be moved away", o.name)
	}
}

// call makes an upcall: it is under way until the application has done it.
func (o *owner) call(u upcall) {
	u.of = o.machine
	o.send(&message{from: o.name, to: appName, what: u})
}

// hush ends upcalls that nobody waits for.
func (o *owner) hush(t protocol.Ticket) {
	o.underWay = slices.DeleteFunc(o.underWay, func(m *message) bool {
		u, ok := m.what.(upcall)
		return ok && u.Ticket == t && u.of == o.machine
	})
}

func (o *owner) discard(t protocol.Ticket) {
	in := o.incoming[t]
	o.hush(t)
	if in == nil {
		return
	}
	delete(o.incoming, t)
	o.then("%s discards what came, or is to come, under %s", o.name, o.ticket(t))
	o.answer(in, false)
}

// answer lets the source know. One that moves state to itself needs no message,
// and gets one all the same.
func (o *owner) answer(in *incoming, confirmed bool) {
	o.send(&message{from: o.name, to: o.sessions[in.From.Session].place, what: verdict{in.Ticket, confirmed}})
}

// stateOf is what the application has for a range.
func (o *owner) stateOf(r leasehold.Range) values {
	out := values{}
	for k, v := range o.state {
		if r.Contains(k) {
			out[k] = v
		}
	}
	return out
}

// served is the application having done what an upcall asked for.
func (o *owner) served(m *message) {
	u := m.what.(upcall)
	if !o.alive || u.of != o.machine {
		return
	}
	if u.state == nil {
		o.say("%s's application has copied %s (%s)", o.name, o.span(u.r), o.ticket(u.Ticket))
		o.step(machine.Copied{Ticket: u.Ticket})
	} else {
		o.say("%s's application has put %s in its place (%s)", o.name, o.span(u.r), o.ticket(u.Ticket))
		for k, v := range u.state {
			o.state[k] = value{v.text, u.lease.Generation}
		}
		o.step(machine.Installed{Ticket: u.Ticket})
	}
	o.audit()
}

// failed is the application failing to do it.
func (o *owner) failed(m *message) {
	u := m.what.(upcall)
	o.say("%s's application fails to %s", o.name, o.quoteMove(u))
	if u.state == nil {
		o.step(machine.GaveUp{Ticket: u.Ticket})
	} else {
		o.step(machine.Installed{Ticket: u.Ticket, Failed: true})
	}
	o.audit()
}

// takeIn is the rest of some state arriving.
func (o *owner) takeIn(from string, r rest) {
	in := o.incoming[r.Ticket]
	if in == nil {
		o.then("%s expects nothing under %s", o.name, o.ticket(r.Ticket))
		o.send(&message{from: o.name, to: from, what: verdict{r.Ticket, false}})
		return
	}
	in.state = r.state
	o.step(machine.Imported{Ticket: r.Ticket})
}

func (o *owner) learn(v verdict) {
	if v.confirmed {
		o.step(machine.Confirmed{Ticket: v.Ticket})
		return
	}
	o.step(machine.GaveUp{Ticket: v.Ticket})
}

// quoteMove writes what owners say to each other, and to their applications.
func (o *owner) quoteMove(what any) string {
	switch m := what.(type) {
	case rest:
		return fmt.Sprintf("the rest of %s (%s)", o.span(m.r), o.ticket(m.Ticket))
	case verdict:
		if m.confirmed {
			return fmt.Sprintf("all of %s is here", o.ticket(m.Ticket))
		}
		return fmt.Sprintf("%s is not wanted here", o.ticket(m.Ticket))
	case upcall:
		if m.state == nil {
			return fmt.Sprintf("copy %s to %s (%s)", o.span(m.r), o.holderName(o.outgoing[m.Ticket].To), o.ticket(m.Ticket))
		}
		return fmt.Sprintf("put %s in its place (%s)", o.span(m.r), o.ticket(m.Ticket))
	}
	panic(fmt.Sprintf("%s sends %T", o.name, what))
}

var stateNames = [...]string{
	protocol.MoveCopying: "is being copied", protocol.MoveStopped: "is stopped for", protocol.MoveDone: "is done", protocol.MoveFailed: "has failed",
}

// reports writes what a request says about moves.
func (w *world) reports(r *protocol.LeaseRequest) string {
	var b strings.Builder
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "; %s %s", w.ticket(m.Ticket), stateNames[m.State])
	}
	for _, in := range r.Imports {
		fmt.Fprintf(&b, "; has the state of %s (%s)", w.span(in.Range), w.ticket(in.Ticket))
	}
	if r.Parting && !r.Leaving {
		b.WriteString("; wants to leave")
	}
	if r.Draining {
		b.WriteString("; is being drained")
	}
	return b.String()
}

// orders writes what a reply says about moves, to an owner that holds so much.
func (w *world) orders(r *protocol.LeaseReply, held []leasehold.Lease) []string {
	var parts []string
	for _, d := range r.Departures {
		if !slices.ContainsFunc(held, func(l leasehold.Lease) bool { return l.Range.Overlaps(d.Range) }) {
			parts = append(parts, fmt.Sprintf("has not recorded %s yet", w.ticket(d.Ticket)))
			continue
		}
		parts = append(parts, fmt.Sprintf("send %s to %s (%s)", w.span(d.Range), w.holderName(d.To), w.ticket(d.Ticket)))
	}
	for _, a := range r.Arrivals {
		parts = append(parts, fmt.Sprintf("expect %s from %s (%s)", w.span(a.Range), w.holderName(a.From), w.ticket(a.Ticket)))
	}
	if r.Draining {
		parts = append(parts, "is to hold nothing")
	}
	if r.Idle {
		parts = append(parts, "need not wait any longer")
	}
	return parts
}
