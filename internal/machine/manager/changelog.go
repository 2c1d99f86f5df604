package manager

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/mono"
	"github.com/leasehold-dev/leasehold/internal/table"
)

// A changelog remembers the newest changes of a table, for lookups that have
// missed some. It is bounded by number and by age (Centrifuge 2.1.2); a lookup
// that needs older ones gets a snapshot.
type changelog struct {
	base    leasehold.LSN // changes[0] follows on it
	changes []table.Change
	// batches says when changes were committed, oldest first.
	batches []committedBatch
}

type committedBatch struct {
	last leasehold.LSN
	at   mono.Instant
}

// append adds a batch. The slices handed out by since stay as they are.
func (l *changelog) append(now mono.Instant, batch []table.Change) {
	l.changes = append(l.changes, batch...)
	l.batches = append(l.batches, committedBatch{batch[len(batch)-1].LSN, now})
}

// truncate forgets batches until at most most changes are left and none is
// older than age.
func (l *changelog) truncate(now mono.Instant, most int, age time.Duration) {
	for len(l.batches) > 0 && (len(l.changes) > most || now.Sub(l.batches[0].at) > age) {
		last := l.batches[0].last
		l.changes = l.changes[last-l.base:]
		l.base = last
		l.batches = l.batches[1:]
	}
}

// since returns the changes after lsn, and false if they are forgotten.
func (l *changelog) since(lsn leasehold.LSN) ([]table.Change, bool) {
	if lsn < l.base || lsn > l.base+leasehold.LSN(len(l.changes)) {
		return nil, false
	}
	tail := l.changes[lsn-l.base:]
	return tail[:len(tail):len(tail)], true
}
