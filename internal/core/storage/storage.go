// Package storage is what the manager group asks of its store, as nouns: a
// leader record that is swapped, batches of table changes that are appended
// under guard, and what is read back.
//
// The store is asked for linearizable compare-and-swap and reads, and for
// nothing that involves time.
package storage

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A ManagerID names one manager process of a group.
type ManagerID string

// A Version numbers the writes of the leader record; 0 means that there is no
// record yet.
type Version uint64

// An Identity tells a store from a copy of it. Empty fields are unknown and prove nothing.
type Identity struct {
	// Cluster is the same for all managers of a group. It changes when a backup is restored
	// into a new cluster. A leader record with another cluster was copied, and what was
	// written after the copy is lost.
	Cluster string
	// Directory is the data directory of one manager. It changes when the directory is
	// replaced by a copy, which may be old.
	Directory string
}

// A Record says who leads. The leader writes it again and again, with a new
// Beat each time, so that others can see it stand still when the leader dies.
type Record struct {
	Version Version
	Term    leasehold.Term
	Leader  ManagerID
	// Session names the leader's process. Without it a manager that was killed
	// and started again could take its predecessor's record for its own.
	Session leasehold.Session
	Beat    uint64
	// Wait is how long the record must stand still before anyone else may take
	// over: the leader's own word, which holds whatever others are configured
	// to believe.
	Wait     time.Duration
	Resigned bool // the leader has stopped acting: anyone may take over at once
	// At is when it was written, on the writer's wall clock, in seconds since 1970; 0 if that
	// is not known. It helps to choose numbers, and decides nothing.
	At int64
	// Boot names the boot of the machine on which it was written, and Uptime is for how long
	// that machine had run; empty and 0 if that is not known. They tell a manager on the same
	// boot how old the record is, without wall clocks.
	Boot   string
	Uptime time.Duration
	// Store is the store that it was written to.
	Store Identity
	// Floor is what all numbers exceed that are given out from now on, LSNs and generations
	// of all namespaces: a table that is below it may have lost history, and goes on above it
	// after a gap (see [Above] and table.Gap).
	Floor uint64
	// LostBelow: a table below it has lost history for certain. It is the floor of a leader that
	// knew that the store was restored, and stays in the record: evidence outlives that leader.
	LostBelow uint64
}

// An Outcome is how a write ended.
type Outcome uint8

// The outcomes.
const (
	Done     Outcome = 1 // it happened
	Conflict Outcome = 2 // a guard did not hold: it did not happen and never will
	Unknown  Outcome = 3 // it may have happened, or may yet: read before deciding anything
)

func (o Outcome) String() string {
	switch o {
	case Done:
		return "done"
	case Conflict:
		return "conflict"
	case Unknown:
		return "unknown"
	}
	return "outcome?"
}

// A Batch appends changes to a namespace's log in one guarded write: it is
// refused unless the leader record has this Term and the log ends at Prev. A
// batch that was sent is never altered, so that sending it again is harmless.
type Batch struct {
	Namespace leasehold.Namespace
	Term      leasehold.Term
	Prev      leasehold.LSN
	Changes   []table.Change
	// Base, if it is not nil, takes the place of all that is stored: a table at an
	// LSN above Prev, from which the log goes on. Then there are no changes.
	// Unfinished: that is to happen once more before there are any.
	Base       *table.Table // immutable
	Unfinished bool
}

// Last returns the LSN at which the log ends once the batch is in it.
func (b *Batch) Last() leasehold.LSN {
	if b.Base != nil {
		return b.Base.LSN()
	}
	return b.Prev + leasehold.LSN(len(b.Changes))
}

// A Snapshot replaces a namespace's log up to the LSN of Table. It is refused
// unless the leader record has this Term. It never changes what is stored,
// only how, so that its outcome does not matter.
type Snapshot struct {
	Namespace leasehold.Namespace
	Term      leasehold.Term
	Table     *table.Table // immutable
}

// An End is where a namespace's log ends.
type End struct {
	Term leasehold.Term // of the leader record at that instant
	LSN  leasehold.LSN
}

// A State is everything stored about a namespace, read at one instant.
type State struct {
	Term    leasehold.Term // of the leader record at that instant
	Table   *table.Table   // the newest snapshot; nil if there is none
	Changes []table.Change // what follows on it
	// Unfinished: the last [Batch] was.
	Unfinished bool

	// Unknown: nothing is stored, because the store is the memory of a leader
	// that is gone. What there is only the owners know. The log goes on at
	// [First] of the term.
	Unknown bool
}

// Replay returns the table that the state describes.
func (s *State) Replay() (*table.Table, error) {
	t := table.New()
	if s.Table != nil {
		t = s.Table.Clone()
	}
	if s.Unknown {
		return nil, leasehold.Errorf("replay", leasehold.ErrInternal, "", "nothing is known about the table: the owners must be asked")
	}
	for i := range s.Changes {
		if err := t.Apply(&s.Changes[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// End returns the LSN at which the log ends.
func (s *State) End() leasehold.LSN {
	var end leasehold.LSN
	switch {
	case s.Unknown:
		end, _ = First(s.Term)
	case s.Table != nil:
		end = s.Table.LSN()
	}
	return end + leasehold.LSN(len(s.Changes))
}
