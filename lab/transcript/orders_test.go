package transcript

import (
	"fmt"

	"github.com/leasehold-dev/leasehold"
	machine "github.com/leasehold-dev/leasehold/internal/core/machine/manager"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	ownermachine "github.com/leasehold-dev/leasehold/internal/core/machine/owner"
)

// order executes an operator's command at a manager: "drain M A", "move M 1-2 B".
func (w *world) order(verb string, args []string) error {
	if len(args) < 2 {
		return errUsage
	}
	p, err := w.process(args[0])
	if err != nil {
		return err
	}
	m, ok := p.(*manager)
	if !ok || m.node.Manager(namespace) == nil {
		return fmt.Errorf("%s does not lead", args[0])
	}
	o := machine.Order{Owner: leasehold.OwnerID(args[len(args)-1])}
	switch {
	case verb == "drain" && len(args) == 2:
		o.Kind = machine.OrderDrain
	case verb == "undrain" && len(args) == 2:
		o.Kind = machine.OrderUndrain
	case verb == "move" && len(args) == 3:
		var lo, hi uint64
		if _, err := fmt.Sscanf(args[1], "%d-%d", &lo, &hi); err != nil {
			return err
		}
		o.Kind, o.Range = machine.OrderMove, leasehold.Range{Start: w.key(lo), Limit: w.key(hi)}
	default:
		return errUsage
	}
	m.step(managerproc.Manager{Namespace: namespace, Term: m.node.Term(), Event: o})
	return nil
}

// moveCommand executes a command for an application, or the timeout of a move: "copied A t1", "gives up A
// t1".
func (w *world) moveCommand(verb string, args []string) error {
	if verb == "gives" && len(args) == 3 && args[0] == "up" {
		args = args[1:]
	}
	if len(args) != 2 {
		return errUsage
	}
	p, err := w.process(args[0])
	if err != nil {
		return err
	}
	o, ok := p.(*owner)
	if !ok {
		return errUsage
	}
	if verb == "gives" {
		for _, t := range w.tickets {
			if w.ticket(t) == args[1] {
				o.step(ownermachine.GaveUp{Ticket: t})
				o.audit()
				return nil
			}
		}
		return fmt.Errorf("unknown move %s", args[1])
	}
	m := o.pickUpcall(args[1], verb)
	if m == nil {
		return fmt.Errorf("%s's application has no call for %s", args[0], args[1])
	}
	if verb == "fails" {
		o.fail(m)
	} else {
		o.complete(m)
	}
	return nil
}

// pickUpcall removes the upcall of a move from the messages in flight.
func (o *owner) pickUpcall(ticket, verb string) *message {
	for i, m := range o.underWay {
		u, ok := m.what.(upcall)
		installs := u.state != nil
		if !ok || m.from != o.name || o.ticket(u.Ticket) != ticket || verb == "copied" && installs || verb == "installed" && !installs {
			continue
		}
		o.underWay = append(o.underWay[:i:i], o.underWay[i+1:]...)
		return m
	}
	return nil
}
