package owner

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
)

// moves are the moves of state from this owner (departures) and to it (arrivals).
type moves struct {
	departures []*departure
	arrivals   []*arrival
	contact    backing
	draining   bool // an operator has requested a drain of this owner
}

// departs reports whether a part of r is already being moved away.
func (v *moves) departs(r leasehold.Range) bool {
	return slices.ContainsFunc(v.departures, func(d *departure) bool { return !d.ended() && d.Range.Overlaps(r) })
}

// stopped returns the held leases that are not served because their move has stopped them, sorted.
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

// installing returns the held leases whose state is still being installed, sorted.
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

// reports returns the progress of all departures for a request, and marks them as reported.
func (v *moves) reports(now mono.Instant) []protocol.MoveReport {
	if len(v.departures) == 0 {
		return nil
	}
	out := make([]protocol.MoveReport, 0, len(v.departures))
	for _, d := range v.departures {
		d.reported = true
		r := protocol.MoveReport{Ticket: d.Ticket, Range: d.Range, To: d.To, State: d.state, Newest: d.newest()}
		if d.state == protocol.MoveDone && !d.contactLost {
			r.Backing = v.contact.at(now)
		}
		out = append(out, r)
	}
	return out
}

// imports returns the confirmed arrivals without a lease for a request, and marks them as reported.
func (v *moves) imports(now mono.Instant) []protocol.Import {
	var out []protocol.Import
	for _, a := range v.arrivals {
		if a.confirmed && a.lease.Generation == 0 {
			a.reported = true
			out = append(out, protocol.Import{Ticket: a.Ticket, Range: a.Range, Since: a.Since, Backing: a.backing.at(now)})
		}
	}
	return out
}

// proven returns the number of completed moves, not recorded as far as this owner knows, that it can
// prove to a new leader.
func (v *moves) proven() (n int) {
	for _, d := range v.departures {
		if d.state == protocol.MoveDone && !d.contactLost {
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
