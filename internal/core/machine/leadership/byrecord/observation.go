package byrecord

import (
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/storage"
)

// A recordStage says how much is known of the record's age.
type recordStage uint8

const (
	recordUnread    recordStage = iota // it was never read
	recordRead                         // it was read: nothing tells how old it is
	recordWitnessed                    // we have seen it change, so that we know from our own clock how old it is
)

// An observation is the record as this manager has seen it.
type observation struct {
	record storage.Record   // newest seen or written
	at     mono.Instant     // when this machine first saw it
	store  storage.Identity // as of the newest read
	stage  recordStage
	// doubtful: an owner has heard of a leader that the store does not know. restored: we have
	// seen an older record than before. In both cases no leader that knows it has written since.
	doubtful, restored bool
}

// copied reports whether the record was written to another store than the one it was read
// from. That store was made from a backup, and what was written after the backup is lost.
func (o *observation) copied() bool { return differ(o.record.Store.Cluster, o.store.Cluster) }

// known reports whether the record has been read at least once.
func (o *observation) known() bool { return o.stage != recordUnread }
