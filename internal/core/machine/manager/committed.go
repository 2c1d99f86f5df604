package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// committedState is what the store has. Only this is ever sent to owners and lookups.
type committedState struct {
	table *table.Table
	log   *changelog.Log // the changes that led to it
	// snapshot is the table as lookups get it; nil if it must be copied again.
	snapshot *table.Table
	// unsaved counts changes since the store's last snapshot.
	unsaved int
}

// frozen returns a copy of the table for others to keep.
func (c *committedState) frozen() *table.Table {
	if c.snapshot == nil {
		c.snapshot = c.table.Clone()
	}
	return c.snapshot
}

// arrived returns the ticket of a lease that the table gives to p, although p has
// never held it, if p has the state: our predecessor recorded that it had moved,
// and did not live to say so. It has if p's newest import of the range began
// before the lease was granted, and nothing was lost there since: for the table
// to name p without a loss, the state must have come to it last.
func (c *committedState) arrived(p *peer, l leasehold.Lease, imports []protocol.Import) (protocol.Ticket, bool) {
	for _, in := range slices.Backward(imports) {
		if !in.Range.Covers(l.Range) {
			continue
		}
		for _, e := range c.table.Within(l.Range) {
			if e.Generation != l.Generation || e.Generation <= in.Since.Newest || e.Lost > in.Since.LSN {
				return protocol.Ticket{}, false
			}
		}
		return in.Ticket, true
	}
	return protocol.Ticket{}, false
}

// held is the table as an assignment: who has what now.
func (c *committedState) held() partition.Assignment {
	var a partition.Assignment
	for r, e := range c.table.All() {
		if e.Vacant() {
			a = a.Append(r.Start, "")
			continue
		}
		a = a.Append(r.Start, e.Holder.Owner)
	}
	return a
}
