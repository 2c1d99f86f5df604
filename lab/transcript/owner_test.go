package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// An owner is an owner process.
type owner struct {
	host
	id      leasehold.OwnerID
	machine *machine.Machine
	view    *machine.View
	seq     protocol.Seq  // of its newest message
	asked   *table.Holder // holder whose process its host checks

	mover    string // empty if it cannot move state
	outgoing map[protocol.Ticket]protocol.Departure
	incoming map[protocol.Ticket]*incoming
	state    values
}

func (o *owner) boot(options map[string]string) error {
	if named := options["named"]; named != "" {
		o.id = leasehold.OwnerID(named)
	} else if o.id == "" {
		o.id = leasehold.OwnerID(o.name)
	}
	if _, moves := options["mover"]; moves {
		o.mover = o.name
	}
	if err := setRate(&o.host, options); err != nil {
		return err
	}
	m, err := machine.New(o.local(), machine.Config{
		Namespace: namespace, Rand: o.rand(), Mover: o.mover,
		Holder: &table.Holder{Owner: o.id, Session: o.newSession(o.id, o.name), Addr: o.name, Weight: 1},
	})
	if err != nil {
		return err
	}
	o.machine, o.view, o.seq, o.asked = m, m.View(), 0, nil
	o.outgoing, o.incoming, o.state = map[protocol.Ticket]protocol.Departure{}, map[protocol.Ticket]*incoming{}, values{}
	return nil
}

func (o *owner) slept() { o.step(machine.Slept{}) }

func (o *owner) wake() { o.do(o.machine.Advance(o.local())) }

func (o *owner) receive(from string, what any) {
	switch what := what.(type) {
	case finalState:
		o.receiveState(from, what)
	case moveReply:
		o.receiveReply(what)
	case *protocol.LeaseReply:
		o.step(machine.Reply{LeaseReply: what})
	case protocol.NotLeader:
		o.step(machine.Redirect{NotLeader: what})
	}
}

func (o *owner) step(e machine.Event) { o.do(o.machine.Step(o.local(), e)) }

func (o *owner) do(actions []machine.Action, wake mono.Instant) {
	for _, a := range actions {
		switch a := a.(type) {
		case machine.Send:
			o.seq = a.Request.Seq
			o.sendToManagers(o.name, a.To, a.Request)
		case machine.Publish:
			if len(o.view.Kept)+len(a.View.Kept) > 0 && !onlyComing(o.view, a.View) {
				o.then("%s", o.holds(a.View))
			}
			o.view = a.View
		case machine.GrantedLeases:
			o.then("%s upcall: granted %s", o.name, o.leases(a.Leases))
		case machine.RevokedLeases:
			o.then("%s upcall: revoked %s (%v)", o.name, o.leases(a.Leases), a.Cause)
		case machine.FindPredecessor:
			o.asked = a.Incumbent
			o.then("%s checks with its host if the process of %s exists", o.name, o.holderName(a.Incumbent))
		case machine.Left:
			o.then("%s has left", o.name)
			o.alive = false
		case machine.Note:
			o.then("%s %s", o.name, ownerNote(a))
		default:
			o.carry(a)
		}
	}
	o.alarm = wake
}

// sendToManagers sends to one manager, or to all of them if none is named.
func (w *world) sendToManagers(from string, to storage.ManagerID, what any) {
	for _, p := range w.processes {
		if m, ok := p.(*manager); ok && (to == "" || string(to) == m.name) {
			w.send(&message{from: from, to: m.name, what: what})
		}
	}
}

// valid reports whether checks can succeed. A suspended process does not check.
func (o *owner) valid() bool { return o.alive && !o.asleep && o.local() < o.view.Until }

// onlyComing reports whether two views differ only in the leases that are coming.
func onlyComing(a, b *machine.View) bool {
	return !slices.Equal(a.Coming, b.Coming) && a.Until == b.Until && protocol.SameLeases(a.Kept, b.Kept) && protocol.SameLeases(a.Leases, b.Leases)
}

func (o *owner) holds(v *machine.View) string {
	if len(v.Kept) == 0 || o.local() >= v.Until {
		return o.name + " holds nothing"
	}
	left := seconds(v.Until.Sub(o.local()))
	silent := protocol.Missing(v.Kept, v.Leases)
	switch {
	case len(silent) == 0:
		return fmt.Sprintf("%s holds %s for %s", o.name, o.leases(v.Leases), left)
	case len(v.Leases) == 0:
		return fmt.Sprintf("%s keeps %s for %s, without serving it", o.name, o.leases(silent), left)
	}
	return fmt.Sprintf("%s holds %s for %s, and keeps %s without serving it", o.name, o.leases(v.Leases), left, o.leases(silent))
}

func (o *owner) show() { o.say("%s", o.holds(o.view)) }

func (o *owner) quote(_ string, what any) string {
	r, ok := what.(*protocol.LeaseRequest)
	if !ok {
		return o.quoteMove(what)
	}
	var b strings.Builder
	b.WriteString(o.numbers(r.Term, r.Seq, r.Heard))
	switch {
	case r.Leaving:
		b.WriteString(" leaves")
	case len(r.Leases) == 0:
		b.WriteString(" holds nothing")
	default:
		b.WriteString(" holds " + o.leases(r.Leases))
	}
	if r.Applied != r.Heard {
		fmt.Fprintf(&b, " (applied %d)", r.Applied)
	}
	if !r.Gone.IsZero() {
		fmt.Fprintf(&b, "; %s has ended", o.sessions[r.Gone].name)
	}
	return b.String() + o.reports(r)
}
