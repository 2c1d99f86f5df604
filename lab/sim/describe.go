package sim

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/core/machine/leadership/byrecord"
	"github.com/leasehold-dev/leasehold/internal/core/machine/lookup"
	"github.com/leasehold-dev/leasehold/internal/core/machine/managerproc"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

func describe(what any) string {
	switch m := what.(type) {
	case nil:
		return "time"
	case *protocol.LeaseRequest:
		return fmt.Sprintf("request %v #%d heard t%d#%d applied #%d leaving=%v leases %v%s", m.Holder, m.Seq, m.Term, m.Heard, m.Applied, m.Leaving, m.Leases, describeMoves(m))
	case *protocol.LeaseReply:
		return fmt.Sprintf("reply t%d#%d to %s echo #%d offers %v%s", m.Term, m.Seq, m.Session.Short(), m.Echo, m.Offers, describeOrders(m))
	case *protocol.LookupRequest:
		return fmt.Sprintf("lookup request #%d at lsn %d", m.Seq, m.LSN)
	case *protocol.LookupReply:
		return fmt.Sprintf("lookup reply t%d echo #%d lsn %d age %v from %d, %d changes, snapshot %v", m.Term, m.Echo, m.LSN, m.Age, m.From, len(m.Changes), m.Snapshot != nil)
	case followRequest:
		return fmt.Sprintf("follow request #%d at lsn %d", m.request.Seq, m.request.LSN)
	case followReply:
		return fmt.Sprintf("to follow %s: %T", m.ns, m.event)
	case protocol.NotLeader:
		return fmt.Sprintf("not the leader; the leader is %q of term %d", m.Leader, m.Term)
	case lookup.Redirect:
		return fmt.Sprintf("%s is not the leader, the leader is %q of term %d", m.From, m.Leader, m.Term)
	case lookup.Failed:
		return fmt.Sprintf("%s is unreachable", m.From)
	case *deathReport:
		return fmt.Sprintf("death of %s/%s", m.notice.Owner, m.notice.Session.Short())
	case *storeAnswer:
		return "store: " + describeAnswer(m.event)
	case managerproc.Event:
		return "watch: " + describeAnswer(m)
	case completion:
		return m.what
	case *operation:
		return fmt.Sprintf("operation on %v under %v ends", m.key, m.lease)
	}
	return fmt.Sprintf("%T", what)
}

func describeMoves(r *protocol.LeaseRequest) string {
	var b strings.Builder
	for _, m := range r.Moves {
		fmt.Fprintf(&b, "; %s %v to %v in state %d backed by t%d", m.Ticket.Short(), m.Range, m.To, m.State, m.Backing)
	}
	for _, m := range r.Imports {
		fmt.Fprintf(&b, "; has %s %v backed by t%d", m.Ticket.Short(), m.Range, m.Backing)
	}
	if r.Parting {
		b.WriteString("; parting")
	}
	return b.String()
}

func describeOrders(r *protocol.LeaseReply) string {
	var b strings.Builder
	for _, d := range r.Departures {
		fmt.Fprintf(&b, "; send %s %v to %v", d.Ticket.Short(), d.Range, d.To)
	}
	for _, a := range r.Arrivals {
		fmt.Fprintf(&b, "; expect %s %v from %v", a.Ticket.Short(), a.Range, a.From)
	}
	return b.String()
}

func describeAnswer(e managerproc.Event) string {
	switch e := e.(type) {
	case managerproc.Loaded:
		if e.State == nil {
			return fmt.Sprintf("%s not loaded", e.Namespace)
		}
		return fmt.Sprintf("%s loaded at lsn %d in term %d", e.Namespace, e.State.End(), e.State.Term)
	case managerproc.Catalogued:
		return describeCatalog(e.Catalog)
	case managerproc.Manager:
		return fmt.Sprintf("%s %T%+v", e.Namespace, e.Event, e.Event)
	case managerproc.Election:
		if seen, ok := e.Event.(byrecord.Seen); ok {
			r := seen.Record
			return fmt.Sprintf("record %d: %s/%s leads in term %d, beat %d, resigned %v", r.Version, r.Leader, r.Session.Short(), r.Term, r.Beat, r.Resigned)
		}
		return fmt.Sprintf("%T%+v", e.Event, e.Event)
	}
	return fmt.Sprintf("%T", e)
}

func describeCatalog(c *storage.Catalog) string {
	if c == nil {
		return "catalog not read"
	}
	var names []string
	for _, n := range c.Namespaces {
		name := string(n.Name)
		if n.Deleted {
			name += " (deleted)"
		}
		names = append(names, name)
	}
	return fmt.Sprintf("catalog version %d in term %d: %s", c.Version, c.Term, strings.Join(names, ", "))
}
