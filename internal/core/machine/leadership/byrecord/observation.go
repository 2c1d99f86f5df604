package byrecord

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A recordStage is what is known about the record's age.
type recordStage uint8

const (
	recordUnread    recordStage = iota // it was never read
	recordRead                         // it was read: its age is unknown
	recordWitnessed                    // it was observed to change: its age is known from the local clock
)

// An observation is the record as this manager has read it.
type observation struct {
	record storage.Record   // newest read or written
	at     mono.Instant     // when this machine first read it
	store  storage.Identity // of the newest read
	stage  recordStage
	// doubtful: a peer has received the term of a leader that is not in the store. restored: an
	// older record was read than before. In both cases no leader with this evidence has written
	// since.
	doubtful, restored bool
}

// copied reports whether the record was written to another store than the one that it was read
// from. Then this store was restored from a backup, and all writes after the backup are lost.
func (o *observation) copied() bool { return differ(o.record.Store.Cluster, o.store.Cluster) }

// known reports whether the record has been read at least once.
func (o *observation) known() bool { return o.stage != recordUnread }
