package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// appName is the receiver of an owner's calls of its application. A call is in flight until the application
// has completed it.
const appName = "app"

// A value is the state of one key, with the generation that it was written under.
type value struct {
	text       string
	generation leasehold.Generation
}

type values map[leasehold.Key]value

// An incoming is a move at its target.
type incoming struct {
	protocol.Arrival
	state values
}

type (
	// finalState is the last part of a range's state; here it has all of it.
	finalState struct {
		protocol.Ticket
		r     leasehold.Range
		state values
	}
	// moveReply is the target's reply.
	moveReply struct {
		protocol.Ticket
		confirmed bool
	}
	// An upcall is a call of the application: to copy state, or to install received state.
	upcall struct {
		protocol.Ticket
		of    *machine.Machine
		r     leasehold.Range
		lease leasehold.Lease // of the installed state
		state values
	}
)

// ticket returns the name of a move, by the order of appearance: t1, t2.
func (w *world) ticket(t protocol.Ticket) string {
	i := slices.Index(w.tickets, t)
	if i < 0 {
		i = len(w.tickets)
		w.tickets = append(w.tickets, t)
	}
	return fmt.Sprintf("t%d", i+1)
}

// carry executes an owner's actions for moves.
func (o *owner) carry(a machine.Action) {
	switch a := a.(type) {
	case machine.StartMove:
		o.outgoing[a.Ticket] = a.Departure
		o.call(upcall{Ticket: a.Ticket, r: a.Range})
	case machine.Stop:
		d := o.outgoing[a.Ticket]
		o.send(&message{from: o.name, to: o.sessions[d.To.Session].place, what: finalState{a.Ticket, d.Range, o.stateOf(d.Range)}})
	case machine.EndMove:
		if _, known := o.outgoing[a.Ticket]; known {
			delete(o.outgoing, a.Ticket)
			o.then("%s has completed %s", o.name, o.ticket(a.Ticket))
		}
		o.dropCalls(a.Ticket)
	case machine.Expect:
		o.incoming[a.Ticket] = &incoming{Arrival: a.Arrival}
		o.then("%s expects the state of %s (%s)", o.name, o.span(a.Range), o.ticket(a.Ticket))
	case machine.Confirm:
		o.answer(o.incoming[a.Ticket], true)
	case machine.Discard:
		o.discard(a.Ticket)
	case machine.Install:
		in := o.incoming[a.Ticket]
		delete(o.incoming, a.Ticket)
		o.call(upcall{Ticket: a.Ticket, r: a.Lease.Range, lease: a.Lease, state: in.state})
	case machine.Parted:
		o.then("%s has no state left to move", o.name)
	}
}

// call makes an upcall, which is in flight until the application has completed it.
func (o *owner) call(u upcall) {
	u.of = o.machine
	o.send(&message{from: o.name, to: appName, what: u})
}

// dropCalls removes the upcalls of a move that has ended.
func (o *owner) dropCalls(t protocol.Ticket) {
	o.underWay = slices.DeleteFunc(o.underWay, func(m *message) bool {
		u, ok := m.what.(upcall)
		return ok && u.Ticket == t && u.of == o.machine
	})
}

func (o *owner) discard(t protocol.Ticket) {
	in := o.incoming[t]
	o.dropCalls(t)
	if in == nil {
		return
	}
	delete(o.incoming, t)
	o.then("%s discards the state of %s", o.name, o.ticket(t))
	o.answer(in, false)
}

// answer sends a reply to the source. An owner that moves state to itself needs no message, but gets one.
func (o *owner) answer(in *incoming, confirmed bool) {
	o.send(&message{from: o.name, to: o.sessions[in.From.Session].place, what: moveReply{in.Ticket, confirmed}})
}

// stateOf returns the state of a range.
func (o *owner) stateOf(r leasehold.Range) values {
	out := values{}
	for k, v := range o.state {
		if r.Contains(k) {
			out[k] = v
		}
	}
	return out
}

// complete completes an upcall.
func (o *owner) complete(m *message) {
	u := m.what.(upcall)
	if !o.alive || u.of != o.machine {
		return
	}
	if u.state == nil {
		o.say("%s's application has copied %s (%s)", o.name, o.span(u.r), o.ticket(u.Ticket))
		o.step(machine.Copied{Ticket: u.Ticket})
	} else {
		o.say("%s's application has installed %s (%s)", o.name, o.span(u.r), o.ticket(u.Ticket))
		for k, v := range u.state {
			o.state[k] = value{v.text, u.lease.Generation}
		}
		o.step(machine.Installed{Ticket: u.Ticket})
	}
	o.audit()
}

// fail makes an upcall fail.
func (o *owner) fail(m *message) {
	u := m.what.(upcall)
	o.say("%s's application fails to %s", o.name, o.quoteMove(u))
	if u.state == nil {
		o.step(machine.GaveUp{Ticket: u.Ticket})
	} else {
		o.step(machine.Installed{Ticket: u.Ticket, Failed: true})
	}
	o.audit()
}

// receiveState handles the final part of some state.
func (o *owner) receiveState(from string, r finalState) {
	in := o.incoming[r.Ticket]
	if in == nil {
		o.then("%s does not expect %s", o.name, o.ticket(r.Ticket))
		o.send(&message{from: o.name, to: from, what: moveReply{r.Ticket, false}})
		return
	}
	in.state = r.state
	o.step(machine.Imported{Ticket: r.Ticket})
}

func (o *owner) receiveReply(v moveReply) {
	if v.confirmed {
		o.step(machine.Confirmed{Ticket: v.Ticket})
		return
	}
	o.step(machine.GaveUp{Ticket: v.Ticket})
}

// quoteMove formats messages between owners, and calls of applications.
func (o *owner) quoteMove(what any) string {
	switch m := what.(type) {
	case finalState:
		return fmt.Sprintf("the final state of %s (%s)", o.span(m.r), o.ticket(m.Ticket))
	case moveReply:
		if m.confirmed {
			return fmt.Sprintf("has all of %s", o.ticket(m.Ticket))
		}
		return fmt.Sprintf("does not expect %s", o.ticket(m.Ticket))
	case upcall:
		if m.state == nil {
			return fmt.Sprintf("copy %s to %s (%s)", o.span(m.r), o.holderName(o.outgoing[m.Ticket].To), o.ticket(m.Ticket))
		}
		return fmt.Sprintf("install %s (%s)", o.span(m.r), o.ticket(m.Ticket))
	}
	panic(fmt.Sprintf("unexpected message of %s: %T", o.name, what))
}

var stateNames = [...]string{
	protocol.MoveCopying: "is being copied", protocol.MoveStopped: "is stopped for", protocol.MoveDone: "is done", protocol.MoveFailed: "has failed",
}

// reports formats the moves in a request.
func (w *world) reports(r *protocol.LeaseRequest) string {
	var b strings.Builder
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "; %s %s", w.ticket(m.Ticket), stateNames[m.State])
	}
	for _, in := range r.Imports {
		fmt.Fprintf(&b, "; has the state of %s (%s)", w.span(in.Range), w.ticket(in.Ticket))
	}
	if r.Parting && !r.Leaving {
		b.WriteString("; parting")
	}
	if r.Draining {
		b.WriteString("; draining")
	}
	return b.String()
}

// orders formats the moves in a reply, for an owner that holds some leases.
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
		parts = append(parts, "drains it")
	}
	if r.Idle {
		parts = append(parts, "has nothing left for it to move")
	}
	return parts
}
