// Package changelog remembers the newest changes of a lease table, and answers
// lookups from them. A leader keeps one for the table it decides on, a standby
// for the table it follows.
package changelog

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/mono"
	"github.com/leasehold-dev/leasehold/internal/core/protocol"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A Log holds the newest changes of a table. It is bounded by number and by age
// (Centrifuge 2.1.2); a lookup that needs older ones gets a snapshot.
//
// A Log is not safe for concurrent use. What it has handed out stays as it is.
type Log struct {
	most int
	age  time.Duration

	base    leasehold.LSN // changes[0] follows on it
	changes []table.Change
	// batches says when changes were committed, oldest first.
	batches []batch
	// crossing leads from the table before the newest gap to the one after it; nil if there is none.
	crossing *table.Crossing
}

type batch struct {
	last leasehold.LSN
	at   mono.Instant
}

// New returns an empty log that follows on base and keeps at most so many
// changes, and for no longer than age.
func New(base leasehold.LSN, most int, age time.Duration) *Log {
	return &Log{base: base, most: most, age: age}
}

// NewAcross returns an empty log that follows on a gap.
func NewAcross(c *table.Crossing, most int, age time.Duration) *Log {
	return &Log{base: c.Gap.Base, most: most, age: age, crossing: c}
}

// Len returns how many changes are kept.
func (l *Log) Len() int { return len(l.changes) }

// Append adds changes that follow on the last ones.
func (l *Log) Append(now mono.Instant, changes []table.Change) {
	if len(changes) == 0 {
		return
	}
	l.changes = append(l.changes, changes...)
	l.batches = append(l.batches, batch{changes[len(changes)-1].LSN, now})
	l.truncate(now)
}

// Limit changes how much is kept.
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

// since returns the changes after lsn, and false if they are forgotten.
func (l *Log) since(lsn leasehold.LSN) ([]table.Change, bool) {
	if lsn < l.base || lsn > l.base+leasehold.LSN(len(l.changes)) {
		return nil, false
	}
	tail := l.changes[lsn-l.base:]
	return tail[:len(tail):len(tail)], true
}

// A News says what a lookup was told.
type News uint8

// What a lookup may be told.
const (
	Current  News = iota // it has missed nothing
	Changes              // the changes that it has missed
	Snapshot             // the whole table
	Ahead                // nothing: it knows more than we do
)

// Tell completes a reply to a lookup that asks what has changed: the changes,
// or the whole table where that is smaller or the changes are forgotten
// (Centrifuge 2.2.1). Frozen returns a copy of t that others may keep.
func (l *Log) Tell(now mono.Instant, r *protocol.LookupRequest, t *table.Table, frozen func() *table.Table, reply *protocol.LookupReply) News {
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
