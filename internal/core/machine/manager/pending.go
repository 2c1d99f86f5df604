package manager

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A commitStage says what is known of the batch under way.
type commitStage uint8

const (
	commitIdle    commitStage = iota // there is none
	commitSent                       // the store has not answered yet
	commitUnknown                    // its outcome is unknown: the log's end is read
)

// pendingCommit is the batch under way: at most one. Until its outcome is known, nothing else is
// decided that would be stored.
type pendingCommit struct {
	stage commitStage
	batch *storage.Batch // nil if idle
	table *table.Table   // the table with its changes
	// freed is what of freedLeases the batch records.
	freed []freed
	// tickets are the tickets of the leases that the batch moves.
	tickets  map[leasehold.Generation]protocol.Ticket
	sentAt   mono.Instant // when it was first sent
	fails    int          // how often it was unknown
	rereadAt mono.Instant // when to read the log's end again
}

// carries reports whether the batch under way moves something under the ticket.
func (c *pendingCommit) carries(t protocol.Ticket) bool {
	for _, other := range c.tickets {
		if other == t {
			return true
		}
	}
	return false
}
