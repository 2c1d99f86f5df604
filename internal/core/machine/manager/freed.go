package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// freedLeases are leases that have ended, which the table does not say yet. They are recorded in order:
// total is recorded, plus those in queue, plus those in the batch under way.
type freedLeases struct {
	queue []freed // to be recorded, and then granted anew
	// total and recorded count leases that have ended: all of them, and
	// those of which the table says so.
	total, recorded uint64
	goodbyes        []goodbye // due when so many are recorded
}

// freed is a lease that has ended, which the table does not say yet.
type freed struct {
	leasehold.Lease
	holder *table.Holder
	cause  leasehold.Cause
	moved  *transfer // where its state is; nil if it is lost
}

func (q *freedLeases) add(f freed) {
	q.queue = append(q.queue, f)
	q.total++
}
