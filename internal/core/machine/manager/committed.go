package manager

import (
	"slices"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/changelog"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
	"github.com/leasehold-dev/leasehold/partition"
)

// committedState is the state in the store. Owners and lookups are sent nothing else.
type committedState struct {
	table *table.Table
	log   *changelog.Log // the newest changes of the table
	// snapshot is an immutable copy of the table; nil if there is none of the current table.
	snapshot *table.Table
	// unsaved counts changes since the store's last snapshot.
	unsaved int
}

// frozen returns an immutable copy of the table.
func (c *committedState) frozen() *table.Table {
	if c.snapshot == nil {
		c.snapshot = c.table.Clone()
	}
	return c.snapshot
}

// arrived returns the ticket of a lease that the table gives to p and that p has never held, if p has the state.
// This happens when the leader before recorded a move and failed before it sent the lease. p has the state if its
// newest import of the range began before the lease was granted, and the range had no loss since then: the table
// names p without a loss only if the state moved to p last.
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

// held returns the table as an assignment.
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
