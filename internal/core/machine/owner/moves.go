package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// moves is state on its way: departures are ranges whose state we send, arrivals those whose state we receive.
type moves struct {
	departures []*departure
	arrivals   []*arrival
	contact    backing
	draining   bool // an operator wants us to hold nothing
}

// departs reports whether a part of r is being sent away already.
func (v *moves) departs(r leasehold.Range) bool {
	return slices.ContainsFunc(v.departures, func(d *departure) bool { return !d.ended() && d.Range.Overlaps(r) })
}

// stopped returns the leases that we hold and must not serve, sorted.
func (v *moves) stopped() []leasehold.Lease {
	var out []leasehold.Lease
	for _, d := range v.departures {
		if d.state == protocol.MoveStopped {
			out = append(out, d.leases...)
		}
	}
	sortLeases(out)
	return out
}

// installing returns the leases that we hold and whose state is not in its
// place yet, sorted.
func (v *moves) installing() []leasehold.Lease {
	var out []leasehold.Lease
	for _, a := range v.arrivals {
		if a.lease.Generation != 0 {
			out = append(out, a.lease)
		}
	}
	sortLeases(out)
	return out
}

func (v *moves) arrival(t protocol.Ticket) *arrival {
	for _, a := range v.arrivals {
		if a.Ticket == t {
			return a
		}
	}
	return nil
}

// reports says how far all departures are.
func (v *moves) reports(now mono.Instant) []protocol.MoveReport {
	if len(v.departures) == 0 {
		return nil
	}
	out := make([]protocol.MoveReport, 0, len(v.departures))
	for _, d := range v.departures {
		d.said = true
		r := protocol.MoveReport{Ticket: d.Ticket, Range: d.Range, To: d.To, State: d.state, Newest: d.newest()}
		if d.state == protocol.MoveDone && !d.broken {
			r.Backing = v.contact.at(now)
		}
		out = append(out, r)
	}
	return out
}

// imports says what we have confirmed and have no lease for.
func (v *moves) imports(now mono.Instant) []protocol.Import {
	var out []protocol.Import
	for _, a := range v.arrivals {
		if a.confirmed && a.lease.Generation == 0 {
			a.said = true
			out = append(out, protocol.Import{Ticket: a.Ticket, Range: a.Range, Since: a.Since, Backing: a.backing.at(now)})
		}
	}
	return out
}

// proven is how many moves that are over, and not recorded yet as far as we know, we can
// prove to a new leader.
func (v *moves) proven() (n int) {
	for _, d := range v.departures {
		if d.state == protocol.MoveDone && !d.broken {
			n++
		}
	}
	for _, a := range v.arrivals {
		if a.confirmed && a.lease.Generation == 0 && a.backing.term != 0 {
			n++
		}
	}
	return n
}
