// Package changelog keeps the newest changes of a lease table, and answers lookups from them. The
// leader keeps a log for the table that it decides, a standby for the table that it follows.
package changelog

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Log has the newest changes of a table. It is bounded by number and age (Centrifuge 2.1.2); a
// lookup that needs older changes gets a snapshot.
//
// A Log is not safe for concurrent use. Slices that it has returned are never modified.
type Log struct {
	most int
	age  time.Duration

	base    leasehold.LSN // LSN before changes[0]
	changes []table.Change
	// batches has the commit times of the changes, oldest first.
	batches []batch
	// crossing leads from the table before the newest gap to the table after it; nil if there is
	// none.
	crossing *table.Crossing
}

type batch struct {
	last leasehold.LSN
	at   mono.Instant
}

// New returns an empty log after the LSN base. It keeps at most so many changes, for no longer than
// age.
func New(base leasehold.LSN, most int, age time.Duration) *Log {
	return &Log{base: base, most: most, age: age}
}

// NewAcross returns an empty log that starts after a gap.
func NewAcross(c *table.Crossing, most int, age time.Duration) *Log {
	return &Log{base: c.Gap.Base, most: most, age: age, crossing: c}
}

// Len returns the number of changes in the log.
func (l *Log) Len() int { return len(l.changes) }

// Append adds changes with the next LSNs.
func (l *Log) Append(now mono.Instant, changes []table.Change) {
	if len(changes) == 0 {
		return
	}
	l.changes = append(l.changes, changes...)
	l.batches = append(l.batches, batch{changes[len(changes)-1].LSN, now})
	l.truncate(now)
}

// Limit changes the limits of the log.
func (l *Log) Limit(now mono.Instant, most int, age time.Duration) {
	l.most, l.age = most, age
	l.truncate(now)
}

func (l *Log) truncate(now mono.Instant) {
	for len(l.batches) > 0 && (len(l.changes) > l.most || now.Sub(l.batches[0].at) > l.age) {
		last := l.batches[0].last
		l.changes = l.changes[last-l.base:]
		l.base = last
		l.batches = l.batches[1:]
	}
}

// since returns the changes after lsn, and false if the log does not reach back to it.
func (l *Log) since(lsn leasehold.LSN) ([]table.Change, bool) {
	if lsn < l.base || lsn > l.base+leasehold.LSN(len(l.changes)) {
		return nil, false
	}
	tail := l.changes[lsn-l.base:]
	return tail[:len(tail):len(tail)], true
}

// A ReplyKind is the content of a reply to a lookup.
type ReplyKind uint8

// Contents of a reply.
const (
	Current  ReplyKind = iota // no changes: the lookup is up to date
	Changes                   // the changes after the lookup's LSN
	Snapshot                  // the whole table
	Ahead                     // nothing: the lookup's LSN is after the table's
)

// FillReply completes a reply to a lookup: with the changes since its LSN, or with a snapshot if
// that is smaller or the log is too short (Centrifuge 2.2.1). frozen returns a copy of t that is
// never modified.
func (l *Log) FillReply(now mono.Instant, r *protocol.LookupRequest, t *table.Table, frozen func() *table.Table, reply *protocol.LookupReply) ReplyKind {
	l.truncate(now)
	reply.Echo, reply.LSN, reply.From = r.Seq, t.LSN(), r.LSN
	changes, known := l.since(r.LSN)
	switch {
	case r.LSN > t.LSN():
		return Ahead
	case r.LSN == t.LSN():
		return Current
	case known && len(changes) <= t.Len() && r.LSN != 0:
		reply.Changes = changes
		return Changes
	case r.Crosses && l.crossing != nil && r.LSN != 0 && r.LSN == l.crossing.Gap.After:
		reply.Crossing = l.crossing
		return Changes
	}
	reply.Snapshot = frozen()
	return Snapshot
}
