// Package storage has the requests of the manager group to its store, and their results: a
// compare-and-swap of the leader record, guarded appends of table changes, and reads.
//
// The store must provide linearizable compare-and-swap and reads. It is not used for anything that
// depends on time.
package storage

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/core/table"
)

// A ManagerID identifies one manager process of a group.
type ManagerID string

// A Version numbers the writes of the leader record; 0 means that there is no record.
type Version uint64

// An Identity distinguishes a store from a copy of it. Empty fields are unknown and prove nothing.
type Identity struct {
	// Cluster is the same for all managers of a group. It changes when a backup is restored into a
	// new cluster. If a leader record has another cluster, it was copied, and all writes after the
	// copy are lost.
	Cluster string
	// Directory identifies the data directory of one manager. It changes when the directory is
	// replaced by a copy, which may be old.
	Directory string
}

// A Record is the leader record. The leader rewrites it periodically with a new Beat, so that
// standbys detect a dead leader by an unchanged record.
type Record struct {
	Version Version
	Term    leasehold.Term
	Leader  ManagerID
	// Session identifies the leader's process. Without it a manager that was killed and restarted
	// could mistake its predecessor's record for its own.
	Session leasehold.Session
	Beat    uint64
	// Wait is how long the record must be unchanged before another manager may take over. The
	// leader's value applies, not the configuration of the other managers.
	Wait     time.Duration
	Resigned bool // the leader has stopped: any manager may take over at once
	// At is the writer's wall clock in seconds since 1970, 0 if unknown. It is used to choose
	// numbers (see [Above]), and never as proof that the record is recent.
	At int64
	// Boot identifies the boot of the writer's machine, and Uptime is the machine's uptime at the
	// write; empty and 0 if unknown. A manager in the same boot can compute the record's age from
	// them, without wall clocks.
	Boot   string
	Uptime time.Duration
	// Store identifies the store that the record was written to.
	Store Identity
	// Floor is a lower bound of all LSNs and generations assigned from now on, in all namespaces. A
	// table below it may have lost history, and continues above it after a gap (see [Above] and
	// table.Gap).
	Floor uint64
	// LostBelow: a table below it has certainly lost history. It is the floor of a leader with
	// evidence of a restored store. It stays in the record, so the evidence outlives that leader.
	LostBelow uint64
}

// An Outcome is the result of a write.
type Outcome uint8

// Outcomes of a write.
const (
	Done     Outcome = 1 // the write happened
	Conflict Outcome = 2 // a guard failed: the write did not happen and never will
	Unknown  Outcome = 3 // the write may have happened, or may still happen: read before any decision
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

// A Batch appends changes to a namespace's log in one guarded write. It is rejected unless the
// leader record has this Term and the log ends at Prev. A batch is never modified after it was
// sent, so sending it again is harmless.
type Batch struct {
	Namespace leasehold.Namespace
	Term      leasehold.Term
	Prev      leasehold.LSN
	Changes   []table.Change
	// Base, if it is not nil, replaces the stored table and log: a table at an LSN above Prev, at
	// which the log continues. Then there are no changes. Unfinished: another Base must follow
	// before any changes.
	Base       *table.Table // immutable
	Unfinished bool
}

// Last returns the end of the log after the batch.
func (b *Batch) Last() leasehold.LSN {
	if b.Base != nil {
		return b.Base.LSN()
	}
	return b.Prev + leasehold.LSN(len(b.Changes))
}

// A Snapshot replaces a namespace's log up to the LSN of Table. It is rejected unless the leader
// record has this Term. It changes the representation of the stored table and not its content, so
// its outcome does not matter.
type Snapshot struct {
	Namespace leasehold.Namespace
	Term      leasehold.Term
	Table     *table.Table // immutable
}

// An End is the end of a namespace's log.
type End struct {
	Term leasehold.Term // of the leader record at the same instant
	LSN  leasehold.LSN
}

// A State is everything stored about a namespace, read atomically.
type State struct {
	Term    leasehold.Term // of the leader record at the same instant
	Table   *table.Table   // newest snapshot; nil if there is none
	Changes []table.Change // changes after the snapshot
	// Unfinished is that of the last [Batch].
	Unfinished bool

	// Unknown: nothing is stored, because the store was the memory of the previous leader. Only the
	// owners know their leases (see census). The log continues at [First] of the term.
	Unknown bool
}

// Replay returns the table of the state.
func (s *State) Replay() (*table.Table, error) {
	t := table.New()
	if s.Table != nil {
		t = s.Table.Clone()
	}
	if s.Unknown {
		return nil, leasehold.Errorf("replay", leasehold.ErrInternal, "", "the table is unknown: it needs a census of the owners")
	}
	for i := range s.Changes {
		if err := t.Apply(&s.Changes[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// End returns the LSN of the end of the log.
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
