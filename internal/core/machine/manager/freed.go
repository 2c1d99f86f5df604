package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// freedLeases are ended leases that the table does not record as ended yet. They are recorded in order: total is
// the sum of recorded, queue, and the pending batch.
type freedLeases struct {
	queue []freed // to be recorded, then granted again
	// total and recorded count ended leases: all of them, and those that the table has.
	total, recorded uint64
	goodbyes        []goodbye // each due at a value of recorded
}

// freed is an ended lease that the table does not record as ended yet.
type freed struct {
	leasehold.Lease
	holder *table.Holder
	cause  leasehold.Cause
	moved  *transfer // the transfer of its state; nil if the state is lost
}

func (q *freedLeases) add(f freed) {
	q.queue = append(q.queue, f)
	q.total++
}
