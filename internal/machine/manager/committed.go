package manager

import (
	"github.com/leasehold-dev/leasehold/internal/changelog"
	"github.com/leasehold-dev/leasehold/internal/table"
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
