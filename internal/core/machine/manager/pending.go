package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A commitStage is the state of the pending batch.
type commitStage uint8

const (
	commitIdle    commitStage = iota // there is none
	commitSent                       // no result of the store yet
	commitUnknown                    // unknown outcome: the end of the log is being read
)

// pendingCommit is the batch being committed: at most one. Until its outcome is known, no other change is decided.
type pendingCommit struct {
	stage commitStage
	batch *storage.Batch // nil if idle
	table *table.Table   // the table with its changes
	// freed is the part of freedLeases that the batch records.
	freed []freed
	// tickets are the tickets of the leases that the batch moves.
	tickets  map[leasehold.Generation]protocol.Ticket
	sentAt   mono.Instant // when it was first sent
	fails    int          // number of unknown outcomes
	rereadAt mono.Instant // when to read the end of the log again
}

// last returns the LSN of the table after the pending batch; 0 if there is none.
func (c *pendingCommit) last() leasehold.LSN {
	if c.batch == nil {
		return 0
	}
	return c.batch.Last()
}

// carries reports whether the pending batch records a move with the ticket.
func (c *pendingCommit) carries(t protocol.Ticket) bool {
	for _, other := range c.tickets {
		if other == t {
			return true
		}
	}
	return false
}
